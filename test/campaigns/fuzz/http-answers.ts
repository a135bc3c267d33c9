import { fromBinary } from '@bufbuild/protobuf'
import { ERROR_KINDS, type ErrorCode } from '../../../src/model/errors.ts'
import { compress, decompress } from '../../../src/wire/compression.ts'
import { FrameDecoder } from '../../../src/wire/frame.ts'
import { AppendAckSchema, ReadBatchSchema } from '../../../src/wire/gen/records_pb.ts'
import { messageOf } from '../../../src/wire/session-frames.ts'
import { equal, ok } from './harness/assertions.ts'
import type { Exchange } from './http-service.ts'

const STATUSES = [200, 201, 202, 204, 400, 401, 403, 404, 405, 409, 412, 415, 416, 422]
/** The codes of requests that no endpoint takes. */
const HTTP_CODES: Readonly<Record<string, number>> = {
  not_found: 404,
  method_not_allowed: 405,
  unsupported_encoding: 415,
}
const BODY_BYTES_MAX = 1_000_000

/** Throws unless the response conforms to docs/protocol.md. */
export async function checkExchange(exchange: Exchange): Promise<void> {
  const { request, response } = exchange
  const { status, headers } = response
  ok(STATUSES.includes(status), `the status is ${status}`)
  const body = await decoded(exchange)
  const type = headers.get('content-type')
  if (request.method === 'HEAD' || status === 204) equal(body.length, 0, 'the length of no body')
  else if (status >= 400) checkError(status, body)
  else if (type === 'application/json') JSON.parse(String(body))
  else if (type === 'application/protobuf') fromBinary(schemaOf(request.method), body)
  else if (type === 'text/event-stream') checkEvents(String(body), exchange.isWhole)
  else if (type === 'svcs/proto' || type === 's2s/proto') await checkFrames(exchange, body)
  else ok(type === null || type.startsWith('text/plain'), `the content type is ${type}`)
}

async function decoded({ response, body }: Exchange): Promise<Buffer> {
  const coding = response.headers.get('content-encoding')
  if (coding !== 'gzip' && coding !== 'zstd') return Buffer.from(body)
  return Buffer.from(await decompress(coding, body, { bytesMax: BODY_BYTES_MAX, code: 'other' }))
}

function checkError(status: number, body: Buffer): void {
  const error = JSON.parse(String(body)) as Record<string, unknown>
  const members = Object.keys(error).join(' ')
  if (status === 412) ok(/^(seq_num|fencing_token)_mismatch$/.test(members), `412 has ${members}`)
  else if (status === 416) equal(members, 'tail', 'the members of 416')
  else {
    equal(members, 'code message', `the members of ${status}`)
    const expected = HTTP_CODES[error.code as string] ?? ERROR_KINDS[error.code as ErrorCode]?.status
    equal(expected, status, `the status of ${error.code}`)
    ok(typeof error.message === 'string' && error.message.length < 1000, 'the message of an error')
  }
}

function schemaOf(method: string) {
  return method === 'POST' ? AppendAckSchema : ReadBatchSchema
}

/** Events are complete, because the body ends between two of them. */
function checkEvents(text: string, isWhole: boolean): void {
  const events = text.split('\n\n')
  equal(events.pop(), '', 'what stands behind the last event')
  for (const [i, event] of events.entries()) {
    const isLast = i === events.length - 1
    if (event === 'data: [DONE]') ok(isLast && isWhole, 'there is more behind the end')
    else {
      const [, name, data] = /^event: (batch|ping|error)\n(?:id: \d+,\d+,\d+\n)?data: (.*)$/.exec(event) ?? []
      ok(name !== undefined && (name !== 'error' || isLast), `an event that is none: ${event.slice(0, 100)}`)
      JSON.parse(data!)
    }
  }
}

async function checkFrames({ request, isWhole }: Exchange, body: Buffer): Promise<void> {
  const reader = new FrameDecoder()
  for (const frame of reader.decode(body)) {
    if (frame.kind === 'message') fromBinary(schemaOf(request.method), await messageOf(frame))
    else {
      ok(isWhole && STATUSES.includes(frame.status), `a session ends with ${frame.status}`)
      checkError(frame.status, Buffer.from(frame.body))
    }
  }
  reader.end()
}

/** Loads the codecs, which takes turns of the event loop that the cases do not wait for. */
export async function loadCodecs(): Promise<void> {
  for (const algorithm of ['gzip', 'zstd'] as const) await compress(algorithm, new Uint8Array(1))
}
