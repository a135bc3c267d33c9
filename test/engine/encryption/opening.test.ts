import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import {
  fenceRecord,
  type ReadBatch,
  type ReadQuery,
  type RecordInput,
  type Stream,
} from '../../../src/index.ts'
import { BATCH_ENCODED_BYTES_MAX } from '../../../src/model/limits.ts'
import { bodies } from '../../support/index.ts'
import { byRun } from '../../support/run-size.ts'
import {
  aesOfNode,
  type EncryptedEngine,
  key,
  openEncrypted,
  outcome,
  type SlowSuite,
  slowSuite,
} from './support.ts'

let engine: EncryptedEngine
let suite: SlowSuite
afterEach(() => engine.hw.close())

async function start(appends: readonly (string | RecordInput[])[], slow = true): Promise<void> {
  suite = slowSuite(aesOfNode)
  engine = await openEncrypted(suite)
  for (const append of appends) await engine.with().append(append)
  suite.slow = slow
}

const TEN = Array.from({ length: 10 }, (_, i) => `${i}`)

/**
 * Reads on, answering whenever the cipher was asked all that it is asked at a time; gives how much that was
 * each time.
 */
async function together(reading: Promise<unknown>): Promise<number[]> {
  const asked: number[] = []
  let isOver = false
  void reading
    .finally(() => {
      isOver = true
    })
    .catch(() => {})
  for (;;) {
    await expect.poll(() => isOver || suite.waiting > 0).toBe(true)
    await engine.clock.settle()
    if (suite.waiting === 0) return asked
    asked.push(suite.waiting)
    suite.release()
  }
}

async function batchesOf(stream: Stream, query: ReadQuery | undefined): Promise<ReadBatch<'string'>[]> {
  const batches: ReadBatch<'string'>[] = []
  for await (const batch of stream.follow(query).batches()) batches.push(batch)
  return batches
}

describe('with an asynchronous cipher', () => {
  it.each([
    ['all of them', { seqNum: 0 }, TEN],
    ['those from where the read starts', { seqNum: 4 }, TEN.slice(4)],
    ['no more than are asked for', { seqNum: 2, count: 3 }, TEN.slice(2, 5)],
    ['no more than have room', { seqNum: 0, bytes: 9 * 4 + 8 }, TEN.slice(0, 4)],
  ])('opens the appends of a batch together: %s', async (_, query, expected) => {
    await start(TEN)
    const reading = engine.with().readBatch(query)
    expect(await together(reading)).toEqual([expected.length])
    expect(bodies(await reading)).toEqual(expected)
    expect(suite.opens).toBe(expected.length)
  })

  it('opens an append in which the read starts, but none with commands only', async () => {
    await start([])
    suite.slow = false
    await engine.with().append(['a', 'b'])
    await engine.with().append(fenceRecord('t'))
    for (const body of ['c', 'd']) await engine.with().append(body)
    suite.slow = true
    const reading = engine.with().readBatch({ seqNum: 1 })
    expect(await together(reading)).toEqual([3])
    expect(bodies(await reading)).toEqual(['b', 't', 'c', 'd'])
  })

  it('opens at most one batch at a time', async () => {
    await start(Array.from({ length: 5 }, () => 'x'.repeat(400_000)))
    const reading = batchesOf(engine.with(), { seqNum: 0, count: 5 })
    // The storage gives three at a time, of which two fit a batch.
    expect(await together(reading)).toEqual([2, 1, 2])
    expect((await reading).map(({ count }) => count)).toEqual([2, 1, 2])
    expect(suite.opens).toBe(5)
  })

  it('delivers earlier records before the error of another key, and opens nothing twice', async () => {
    await start(['a', 'b'])
    await engine.with(key(2)).append('c')
    await engine.with().append('d')
    const session = engine.with().follow({ seqNum: 0 }).batches()
    const first = session.next()
    expect(await together(first)).toEqual([4])
    expect(bodies((await first).value!)).toEqual(['a', 'b'])
    expect(await outcome(session.next())).toBe('400 decryption_failed: record decryption failed')
    expect(suite.opens).toBe(4)
  })

  it('leaves no unhandled rejection when the read ends meanwhile', async () => {
    await start(['a', 'b', 'c'])
    const session = engine.with(key(2)).follow({ seqNum: 0 }).batches()
    const next = session.next()
    await expect.poll(() => suite.waiting).toBe(3)
    await session.return?.()
    expect(await next).toEqual({ done: true, value: undefined })
    suite.release()
    // An unhandled rejection would fail the run.
    await engine.clock.settle()
  })
})

it('a synchronous cipher opens only what is delivered', async () => {
  await start(['a'], false)
  await engine.with(key(2)).append('b')
  for (const body of ['c', 'd']) await engine.with().append(body)
  const session = engine.with().follow({ seqNum: 0 }).batches()
  expect(bodies((await session.next()).value!)).toEqual(['a'])
  expect(suite.opens).toBe(2)
  expect(await outcome(session.next())).toBe('400 decryption_failed: record decryption failed')
})

it.each([true, false])('opens a block that exceeded the frame only once: asynchronous %s', async (slow) => {
  const tiny: [Uint8Array, Uint8Array] = [new Uint8Array([1]), new Uint8Array([2])]
  const headers = Array<[Uint8Array, Uint8Array]>(Math.floor((BATCH_ENCODED_BYTES_MAX - 26) / 8)).fill(tiny)
  await start([[{ headers }], 'x'.repeat(50), 'y'], slow)
  const reading = batchesOf(engine.with(), { seqNum: 0, count: 3 })
  expect(await together(reading)).toEqual(slow ? [3] : [])
  expect((await reading).map(({ count }) => count)).toEqual([1, 2])
  expect(suite.opens).toBe(3)
})

it('delivers the same as with a synchronous cipher, and opens each append once', async () => {
  const append = fc.record({ records: fc.integer({ min: 1, max: 4 }), bytes: fc.constantFrom(0, 1, 200_000) })
  const query = fc.record({
    seqNum: fc.nat(12),
    count: fc.option(fc.integer({ min: 1, max: 14 }), { nil: undefined }),
    bytes: fc.option(fc.integer({ min: 1, max: 2_000_000 }), { nil: undefined }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(append, { minLength: 1, maxLength: 8 }), query, async (appends, bounds) => {
      await start(
        appends.map(({ records, bytes }) =>
          Array.from({ length: records }, () => ({ body: 'x'.repeat(bytes) })),
        ),
        false,
      )
      const { seqNum } = await engine.with().checkTail()
      const asked = { ...bounds, count: bounds.count ?? seqNum, seqNum: Math.min(bounds.seqNum, seqNum - 1) }
      const read = async () =>
        (await batchesOf(engine.with(), { ...asked, waitMs: 0 })).map(({ data }) => data)
      const expected = await read()
      const { opens } = suite
      suite.slow = true
      const reading = read()
      await together(reading)
      expect((await reading).map((data) => Buffer.from(data).toString('hex'))).toEqual(
        expected.map((data) => Buffer.from(data).toString('hex')),
      )
      expect(suite.opens).toBe(2 * opens)
      expect(opens).toBeLessThanOrEqual(appends.length)
      await engine.hw.close()
    }),
    { numRuns: byRun({ quick: 8, full: 25 }) },
  )
})
