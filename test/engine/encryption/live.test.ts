import { afterEach, describe, expect, it } from 'vitest'
import {
  type CipherSuite,
  fenceRecord,
  type ReadBatch,
  type ReadQuery,
  type Stream,
} from '../../../src/index.ts'
import { bodies } from '../../support/index.ts'
import { CIPHERS, type EncryptedEngine, key, openEncrypted, outcome } from './support.ts'

let engine: EncryptedEngine
afterEach(() => engine.hw.close())

function counting(suite: CipherSuite) {
  const counted = {
    ...suite,
    opens: 0,
    open: (...args: Parameters<CipherSuite['open']>) => {
      counted.opens++
      return suite.open(...args)
    },
  }
  return counted
}

/**
 * Follows a stream. `batches` are those received so far; `end` is `open`, `done` or the error of the read.
 */
function follow(stream: Stream, query: ReadQuery = { tailOffset: 0 }) {
  const state = { batches: [] as ReadBatch<'string'>[], end: 'open' }
  const run = async () => {
    for await (const batch of stream.follow(query).batches()) state.batches.push(batch)
  }
  void outcome(run()).then((end) => {
    state.end = end === 'ok' ? 'done' : end
  })
  return state
}

describe.each(CIPHERS)('following with %s', (_, suite) => {
  it('delivers appends with their tails', async () => {
    engine = await openEncrypted(suite)
    const state = follow(engine.with())
    await engine.clock.settle()
    await engine.with().append(['a', fenceRecord('t'), { body: 'b', headers: [['k', 'v']] }])
    await expect.poll(() => state.batches.length).toBe(1)
    const [batch] = state.batches
    expect(batch!.records.map(({ seqNum, body }) => [seqNum, body])).toEqual([
      [0, 'a'],
      [1, 't'],
      [2, 'b'],
    ])
    expect(batch!.tail).toEqual({ seqNum: 3, timestamp: 1_000_000 })
    expect(batch).toMatchObject({ count: 3, meteredBytes: 9 + 8 + 2 + 5 + 1 + 8 + 2 + 3, lastSeqNum: 2 })
  })

  it('opens a batch once for all followers with the same key, by value', async () => {
    const counted = counting(suite)
    engine = await openEncrypted(counted)
    const base64 = Buffer.from(key(1)).toString('base64')
    const states = [key(1), key(1), base64].map((encryptionKey) => follow(engine.with(encryptionKey)))
    await engine.clock.settle()
    await engine.with().append('a')
    await expect.poll(() => states.map(({ batches }) => batches.length)).toEqual([1, 1, 1])
    expect(counted.opens).toBe(1)
    expect(new Set(states.map(({ batches }) => batches[0]!.records)).size).toBe(1)
    // Each record is encoded once for all followers.
    expect(new Set(states.map(({ batches }) => batches[0]!.data)).size).toBe(1)
  })

  it('ends only the followers with another key', async () => {
    engine = await openEncrypted(suite)
    const [right, wrong, alsoWrong] = [key(1), key(2), key(2)].map((encryptionKey) =>
      follow(engine.with(encryptionKey)),
    )
    await engine.clock.settle()
    await engine.with().append('a')
    await expect.poll(() => wrong!.end).toBe('400 decryption_failed: record decryption failed')
    await expect.poll(() => alsoWrong!.end).toBe('400 decryption_failed: record decryption failed')
    await engine.with().append('b')
    await expect.poll(() => right!.batches.map(bodies)).toEqual([['a'], ['b']])
    expect(engine.hw.stats().openReads).toBe(1)
  })

  it.each<[string, ReadQuery, string[], string]>([
    ['the whole of it', { count: 3 }, ['a', 'b', 'c'], 'done'],
    ['a part of it', { count: 2 }, ['a', 'b'], 'done'],
    ['a part of it by bytes', { bytes: 20 }, ['a', 'b'], 'done'],
    ['nothing of it by bytes', { bytes: 8 }, [], 'done'],
    ['nothing of it by time', { until: 1_000_000 }, [], 'done'],
  ])('a limit admits %s', async (_, bounds, expected, end) => {
    engine = await openEncrypted(suite)
    const state = follow(engine.with(), { seqNum: 0, waitMs: 60_000, ...bounds })
    await engine.clock.settle()
    await engine.with().append(['a', 'b', 'c'])
    await expect.poll(() => state.end).toBe(end)
    expect(state.batches.flatMap(bodies)).toEqual(expected)
  })

  it('opens commands with any key', async () => {
    engine = await openEncrypted(suite)
    const state = follow(engine.with(key(2)), { seqNum: 0, count: 1, waitMs: 60_000 })
    await engine.clock.settle()
    await engine.with().append([fenceRecord('t'), 'a'])
    await expect.poll(() => state.end).toBe('done')
    expect(state.batches.map(bodies)).toEqual([['t']])
  })

  it('reads history when it falls behind', async () => {
    engine = await openEncrypted(suite, { limits: { followerLagBatches: 2 } })
    const iterator = engine.with().follow({ seqNum: 0 }).batches()
    const first = iterator.next()
    await engine.clock.settle()
    for (const body of ['a', 'b', 'c', 'd', 'e']) await engine.with().append(body)
    const read = bodies((await first).value!)
    while (read.length < 5) read.push(...bodies((await iterator.next()).value!))
    expect(read).toEqual(['a', 'b', 'c', 'd', 'e'])
    await iterator.return?.()
  })
})
