import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../adapters/testing/index.ts'
import { type Engine, open, type Stream } from '../../src/index.ts'

const RECORDS = 'http://localhost/v1/streams/stream/records'

let clock: VirtualClock
let hw: Engine
let stream: Stream

beforeEach(async () => {
  clock = virtualClock()
  hw = await open({ storage: memory(), clock })
  stream = hw.basin('basin').stream('stream')
  await hw.ensureBasin('basin')
  await hw.basin('basin').ensureStream('stream')
})

afterEach(async () => {
  await hw.close()
  expect(clock.pending).toBe(0)
})

/** The result of a promise once it has settled. */
function watched<Result>(work: Promise<Result>) {
  const state: { result?: Result } = {}
  void work.then((result) => {
    state.result = result
  })
  return state
}

describe('the virtual clock waits before it advances', () => {
  /** Keeps the compression threads busy for longer than several turns of the event loop. */
  const busyThreads = () =>
    Promise.all(Array.from({ length: 4 }, () => promisify(pbkdf2)('a', 'b', 10_000, 64, 'sha512')))

  test('for a compressed request', async () => {
    const body = gzipSync(JSON.stringify({ records: [{ body: 'a' }] }))
    const headers = { 'svc-basin': 'basin', 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const busy = busyThreads()
    const response = createHandler(hw, { auth: 'none' })(
      new Request(RECORDS, { method: 'POST', headers, body }),
    )
    const state = watched(response.then(({ status }) => status))
    await clock.settle()
    expect(state.result).toBe(200)
    await busy
  })

  test('for a compressed response', async () => {
    await stream.append('a'.repeat(10_000))
    const busy = busyThreads()
    const headers = { 'svc-basin': 'basin', 'accept-encoding': 'gzip' }
    const response = createHandler(hw, { auth: 'none' })(new Request(`${RECORDS}?seq_num=0`, { headers }))
    const state = watched(response.then(({ headers }) => headers.get('content-encoding')))
    await clock.settle()
    expect(state.result).toBe('gzip')
    await busy
  })

  test('but not for an endless sequence of requests', { tags: ['slow'] }, async () => {
    const body = gzipSync(JSON.stringify({ records: [{ body: 'a' }] }))
    const headers = { 'svc-basin': 'basin', 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const handler = createHandler(hw, { auth: 'none' })
    let isOver = false
    const appending = (async () => {
      while (!isOver) await handler(new Request(RECORDS, { method: 'POST', headers, body }))
    })()
    await clock.advance(1)
    isOver = true
    await appending
  })
})
