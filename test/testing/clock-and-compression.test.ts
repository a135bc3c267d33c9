import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { openEngine } from '../support/index.ts'

const RECORDS = 'http://localhost/v1/streams/stream/records'

async function start() {
  const { hw, clock, stream } = await openEngine()
  onTestFinished(async () => {
    await hw.close()
    expect(clock.pending).toBe(0)
  })
  const handler = createHandler(hw, { auth: 'none' })
  const body = gzipSync(JSON.stringify({ records: [{ body: 'a' }] }))
  const headers = { 'svc-basin': 'basin', 'content-type': 'application/json', 'content-encoding': 'gzip' }
  const append = () => handler(new Request(RECORDS, { method: 'POST', headers, body }))
  const read = () => {
    const headers = { 'svc-basin': 'basin', 'accept-encoding': 'gzip' }
    return handler(new Request(`${RECORDS}?seq_num=0`, { headers }))
  }
  return { clock, stream, append, read }
}

test.each(['append', 'read'] as const)(
  'the virtual clock waits for the compressed data of a request before it advances: %s',
  async (request) => {
    const service = await start()
    await service.stream.append('a'.repeat(10_000))
    // The threads that compress are busy for longer than several turns of the event loop.
    const busy = Array.from({ length: 4 }, () => promisify(pbkdf2)('a', 'b', 10_000, 64, 'sha512'))
    let response: Response | undefined
    void service[request]().then((received) => {
      response = received
    })
    await service.clock.settle()
    expect(response?.status).toBe(200)
    expect(response?.headers.get('content-encoding')).toBe(request === 'read' ? 'gzip' : null)
    await Promise.all(busy)
  },
)

test('it does not wait for an endless sequence of requests', { tags: ['slow'] }, async () => {
  const { clock, append } = await start()
  let isOver = false
  const appending = (async () => {
    while (!isOver) await append()
  })()
  await clock.advance(1)
  isOver = true
  await appending
})
