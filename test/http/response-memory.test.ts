import { expect, onTestFinished, test } from 'vitest'
import { createDurableStreamsHandler } from '../../adapters/durable-streams/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { BASIN, RECORDS } from './support.ts'

const STREAM = '/v1/stream/s'
const EVENTS = { accept: 'text/event-stream' }
const FRAMES = { 'content-type': 'svcs/proto' }

/** Requests for a stored record and for the next one, by each protocol and form of response. */
const FORMS: [form: string, stored: string, live: string | undefined, headers: Record<string, string>][] = [
  ['JSON', `${RECORDS}?seq_num=0`, undefined, {}],
  ['protobuf', `${RECORDS}?seq_num=0`, undefined, { accept: 'application/protobuf' }],
  ['events', `${RECORDS}?seq_num=0&count=1`, `${RECORDS}?tail_offset=0`, EVENTS],
  ['frames', `${RECORDS}?seq_num=0&count=1`, `${RECORDS}?tail_offset=0`, FRAMES],
  ['Durable Streams', `${STREAM}?offset=-1`, undefined, {}],
  ['Durable Streams, live', `${STREAM}?offset=-1&live=sse`, `${STREAM}?offset=now&live=sse`, {}],
]

async function start() {
  const hw = await open({ storage: memory() })
  onTestFinished(() => hw.close())
  const durableStreams = createDurableStreamsHandler(hw, { basin: BASIN, auth: 'none' })
  const own = createHandler(hw, { auth: 'none' })
  const handle = (path: string, init: RequestInit = {}) => {
    const handler = path.startsWith(STREAM) ? durableStreams : own
    const headers = { 'svc-basin': BASIN, ...init.headers }
    return handler(new Request(`http://localhost${path}`, { ...init, headers }))
  }
  const body = 'x'.repeat(100_000)
  const append = (method: string) =>
    handle(STREAM, { method, body, headers: { 'content-type': 'text/plain' } })
  await append('PUT')
  return { handle, append: () => append('POST'), body }
}

/** Reads a response until it has the text, then overwrites and detaches its chunks. */
async function consume(response: Response, text: string): Promise<boolean> {
  const chunks: Uint8Array[] = []
  let received = ''
  for await (const chunk of response.body!) {
    chunks.push(chunk)
    received += Buffer.from(chunk).toString('latin1')
    if (received.includes(text)) break
  }
  for (const chunk of chunks) structuredClone(chunk.fill(0), { transfer: [chunk.buffer] })
  return received.includes(text)
}

test.each(FORMS)('stored records are no part of a response: %s', async (_form, path, _live, headers) => {
  const { handle, body } = await start()
  expect(await consume(await handle(path, { headers }), body)).toBe(true)
  expect(await consume(await handle(path, { headers }), body)).toBe(true)
})

const LIVE_FORMS = FORMS.filter(([, , live]) => live !== undefined)

test.each(LIVE_FORMS)('live responses share no memory: %s', async (_form, _path, live, headers) => {
  const { handle, append, body } = await start()
  const responses = await Promise.all([1, 2, 3].map(() => handle(live!, { headers })))
  const consumed = Promise.all(responses.map((response) => consume(response, body)))
  await append()
  expect(await consumed).toEqual([true, true, true])
})
