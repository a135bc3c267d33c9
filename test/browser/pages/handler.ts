import { createHandler } from '../../../adapters/http/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import { EventReader } from './event-reader.ts'

const BASIN = 'in-a-page'
const RECORDS = '/v1/streams/s/records'

interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly body?: BodyInit
}

/** Opens an engine with stream `s` and a handler for it. */
async function start() {
  const hw = await open({ storage: memory() })
  const errors: string[] = []
  const handler = createHandler(hw, { auth: 'none', onError: (error) => errors.push(String(error)) })
  const call = (method: string, path: string, { headers, json, body }: CallOptions = {}) => {
    const allHeaders = {
      ...(path.startsWith('/v1/streams') && { 'svc-basin': BASIN }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    }
    const sent = json === undefined ? (body ?? null) : JSON.stringify(json)
    const request = new Request(`http://localhost${path}`, { method, headers: allHeaders, body: sent })
    return handler(withHeaders(request, allHeaders))
  }
  await hw.createBasin(BASIN)
  await hw.basin(BASIN).createStream('s', { timestamping: { uncapped: true } })
  return { hw, stream: hw.basin(BASIN).stream('s'), errors, call }
}

/** Sets headers that a page must not set on a `Request`, such as `accept-encoding`. */
function withHeaders(request: Request, headers: Readonly<Record<string, string>>): Request {
  Object.defineProperty(request, 'headers', { value: new Headers(headers) })
  return request
}

async function answerOf(response: Response) {
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
}

async function bytesOf(stream: ReadableStream<Uint8Array<ArrayBuffer>> | null): Promise<Uint8Array> {
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

function through(data: BodyInit, transform: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  return bytesOf(new Response(data).body!.pipeThrough(transform))
}

export async function calls() {
  const { hw, call, errors } = await start()
  const base64 = btoa(String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte)))
  const answers = [
    await call('PUT', '/v1/basins/another-basin'),
    await call('PUT', '/v1/streams/a%2Fb'),
    await call('GET', '/v1/streams'),
    await call('POST', RECORDS, { json: { records: [{ body: 'é', timestamp: 1 }], match_seq_num: 0 } }),
    await call('POST', RECORDS, {
      json: { records: [{ body: base64, timestamp: 2 }] },
      headers: { 'svc-format': 'base64' },
    }),
    await call('POST', RECORDS, { json: { records: [{ body: 'x' }], match_seq_num: 0 } }),
    await call('GET', `${RECORDS}?seq_num=0`, { headers: { 'svc-format': 'base64' } }),
    await call('GET', `${RECORDS}/tail`),
    await call('GET', `${RECORDS}?seq_num=2`),
    await call('GET', '/v1/streams/missing/records'),
    await call('POST', RECORDS, { body: '{', headers: { 'content-type': 'application/json' } }),
    await call('DELETE', '/v1/streams/s'),
  ].map(answerOf)
  const result = { answers: await Promise.all(answers), base64, errors }
  await hw.close()
  return result
}

/** Follows events and cancels, then reads a bounded session to its end. */
export async function events() {
  const { hw, stream, call, errors } = await start()
  const accept = { accept: 'text/event-stream' }
  await stream.append(['a', 'b\u2028'])
  const live = new EventReader(await call('GET', `${RECORDS}?seq_num=0`, { headers: accept }))
  const followed = [await live.next(), await live.next()]
  await stream.append('c')
  followed.push(await live.next())
  const whileOpen = hw.stats().openReads
  await live.cancel()
  const afterwards = hw.stats().openReads
  const bounded = await call('GET', `${RECORDS}?seq_num=0&count=2`, { headers: accept })
  const toTheEnd = await bounded.text()
  await hw.close()
  return {
    contentType: bounded.headers.get('content-type'),
    followed,
    whileOpen,
    afterwards,
    toTheEnd,
    errors,
  }
}

/** Sends a compressed request, then reads with and without `accept-encoding`. */
export async function gzip(text: string) {
  const { hw, stream, call, errors } = await start()
  const body = await through(JSON.stringify({ records: [{ body: text }] }), new CompressionStream('gzip'))
  const appended = await call('POST', RECORDS, {
    body: body as Uint8Array<ArrayBuffer>,
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
  })
  const plain = await call('GET', `${RECORDS}?seq_num=0`)
  const compressed = await call('GET', `${RECORDS}?seq_num=0`, { headers: { 'accept-encoding': 'gzip' } })
  const compressedBytes = await compressed.arrayBuffer()
  const read = new TextDecoder().decode(await through(compressedBytes, new DecompressionStream('gzip')))
  const result = {
    statuses: [appended.status, plain.status, compressed.status],
    codings: [plain.headers.get('content-encoding'), compressed.headers.get('content-encoding')],
    bodies: [(await plain.json()).records[0].body, JSON.parse(read).records[0].body],
    isShorter: compressedBytes.byteLength < text.length / 2,
    tail: (await stream.checkTail()).seqNum,
    errors,
  }
  await hw.close()
  return result
}

/** The content coding of a long response to a client that accepts only one. */
export async function codingOf(acceptEncoding: string, text: string) {
  const { hw, stream, call, errors } = await start()
  await stream.append(text)
  const response = await call('GET', `${RECORDS}?seq_num=0`, {
    headers: { 'accept-encoding': acceptEncoding },
  })
  const body = await response.text()
  await hw.close()
  return { status: response.status, coding: response.headers.get('content-encoding'), body, errors }
}

/**
 * Sends the frame of an append session, and returns the frames of its acks and of a read of the appended
 * records.
 */
export async function session(input: Uint8Array, acceptEncoding: string) {
  const { hw, call, errors } = await start()
  const headers = { 'content-type': 'svcs/proto', 'accept-encoding': acceptEncoding }
  const appending = await call('POST', RECORDS, { body: input as Uint8Array<ArrayBuffer>, headers })
  const acks = await bytesOf(appending.body)
  const reading = await call('GET', `${RECORDS}?seq_num=0&count=1`, { headers })
  const batches = await bytesOf(reading.body)
  await hw.close()
  return { statuses: [appending.status, reading.status], acks, batches, errors }
}
