import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'vitest'
import { ERROR_KINDS, type ErrorCode } from '../../../src/model/errors.ts'
import { decompress } from '../../../src/wire/compression.ts'
import { FrameDecoder, messageOf } from '../../../src/wire/frame.ts'
import { AppendAckSchema, ReadBatchSchema } from '../../wire/gen/records_pb.ts'
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
  expect(STATUSES).toContain(status)
  const body = await decoded(exchange)
  const type = headers.get('content-type')
  if (request.method === 'HEAD' || status === 204) expect(body).toHaveLength(0)
  else if (status >= 400) checkError(status, body)
  else if (type === 'application/json') JSON.parse(String(body))
  else if (type === 'application/protobuf') fromBinary(schemaOf(exchange), body)
  else if (type === 'text/event-stream') checkEvents(String(body), exchange.isWhole)
  else if (type === 'svcs/proto' || type === 's2s/proto') await checkFrames(exchange, body)
  else expect(type ?? 'text/plain').toMatch(/^text\/plain/)
}

async function decoded({ response, body }: Exchange): Promise<Buffer> {
  const coding = response.headers.get('content-encoding')
  if (coding !== 'gzip' && coding !== 'zstd') return Buffer.from(body)
  return Buffer.from(await decompress(coding, body, { bytesMax: BODY_BYTES_MAX, code: 'other' }))
}

function checkError(status: number, body: Buffer): void {
  const error = JSON.parse(String(body)) as Record<string, unknown>
  const members = Object.keys(error).join(' ')
  if (status === 412) expect(members).toMatch(/^(seq_num|fencing_token)_mismatch$/)
  else if (status === 416) expect(members).toBe('tail')
  else {
    expect(members).toBe('code message')
    const expected = HTTP_CODES[error.code as string] ?? ERROR_KINDS[error.code as ErrorCode]?.status
    expect(status, `the status of ${error.code}`).toBe(expected)
    expect(String(error.message).length, 'characters of a message').toBeLessThan(1000)
  }
}

function schemaOf({ request }: Exchange) {
  return request.method === 'POST' ? AppendAckSchema : ReadBatchSchema
}

/** Events are complete, because the body ends between two of them. */
function checkEvents(text: string, isWhole: boolean): void {
  const events = text.split('\n\n')
  expect(events.pop(), 'what follows the last event').toBe('')
  for (const [i, event] of events.entries()) {
    const isLast = i === events.length - 1
    if (event === 'data: [DONE]') expect(isLast && isWhole, 'the session ends here').toBe(true)
    else {
      const [, name, data] = /^event: (batch|ping|error)\n(?:id: \d+,\d+,\d+\n)?data: (.*)$/.exec(event) ?? []
      expect(name, event).toBeDefined()
      if (name === 'error') expect(isLast, 'the session ends here').toBe(true)
      JSON.parse(data!)
    }
  }
}

async function checkFrames(exchange: Exchange, body: Buffer): Promise<void> {
  const decoder = new FrameDecoder()
  for (const frame of decoder.decode(body)) {
    if (frame.kind === 'message') fromBinary(schemaOf(exchange), await messageOf(frame))
    else {
      expect(exchange.isWhole, 'the session ends here').toBe(true)
      expect(STATUSES).toContain(frame.status)
      checkError(frame.status, Buffer.from(frame.body))
    }
  }
  decoder.end()
}
