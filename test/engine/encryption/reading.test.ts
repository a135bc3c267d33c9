import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type CipherSuite,
  fenceRecord,
  type HeadwaterError,
  type ReadBatch,
  type ReadQuery,
  type RecordInput,
  type Stream,
  trimRecord,
} from '../../../src/index.ts'
import { BATCH_ENCODED_BYTES_MAX, MIB } from '../../../src/model/limits.ts'
import type { AppendRequest, Storage } from '../../../src/storage/contract.ts'
import { SEALED_BLOCK_BYTES_MAX } from '../../../src/storage/sealed-block.ts'
import { encodeReadBatch } from '../../../src/wire/protobuf.ts'
import { realistic } from '../../storage/wrapped-storage.ts'
import { bodies, gated, testStorage, wrapped } from '../../support/index.ts'
import { shareOfRuns } from '../../support/property-runs.ts'
import { aegis, aesOfNode, CIPHERS, key, openEncrypted, outcome, SUITES } from './support.ts'

describe('an encrypted stream returns the same bytes as a plain one', () => {
  const bytes = fc.uint8Array({ maxLength: 20 })
  const ordinary: fc.Arbitrary<RecordInput> = fc.record({
    body: bytes,
    headers: fc.array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 5 }), bytes), { maxLength: 3 }),
    timestamp: fc.option(fc.integer({ min: 999_980, max: 1_000_000 }), { nil: undefined }),
  })
  const command = fc.oneof(
    fc.string({ maxLength: 9 }).map((token) => fenceRecord(token)),
    fc.nat(4).map((seqNum) => trimRecord(seqNum)),
  )
  const batch = fc.array(fc.oneof({ weight: 5, arbitrary: ordinary }, { weight: 1, arbitrary: command }), {
    minLength: 1,
    maxLength: 6,
  })
  const few = fc.option(fc.nat(12), { nil: undefined })
  const start = fc.oneof(
    fc.record({ seqNum: fc.nat(25) }),
    fc.record({ timestamp: fc.integer({ min: 999_975, max: 1_000_001 }) }),
    fc.record({ tailOffset: fc.nat(25) }),
  )
  const bounds = fc.record({
    count: few,
    bytes: fc.option(fc.nat(200), { nil: undefined }),
    until: fc.option(fc.integer({ min: 999_975, max: 1_000_001 }), { nil: undefined }),
    clamp: fc.boolean(),
  })
  const query: fc.Arbitrary<ReadQuery> = fc
    .tuple(start, bounds)
    .map(([start, bounds]) => ({ ...start, ...bounds }))
  const script = fc.record({
    batches: fc.array(batch, { minLength: 1, maxLength: 6 }),
    queries: fc.array(query, { minLength: 5 }),
  })

  function fieldsOf({ data, count, meteredBytes, lastSeqNum, tail, records }: ReadBatch<'string'>) {
    return { data: Buffer.from(data).toString('hex'), count, meteredBytes, lastSeqNum, tail, records }
  }

  async function readsOf(stream: Stream, query: ReadQuery): Promise<unknown[]> {
    const all: unknown[] = [
      await stream.readBatch(query).then(fieldsOf, (error: HeadwaterError) => error.code),
    ]
    try {
      for await (const batch of stream.follow({ ...query, waitMs: 0 }).batches()) all.push(fieldsOf(batch))
    } catch (error) {
      all.push((error as HeadwaterError).code)
    }
    return all
  }

  const expectEqual = (suite: CipherSuite, storage: () => Storage) =>
    fc.assert(
      fc.asyncProperty(script, async ({ batches, queries }) => {
        const engine = await openEncrypted(suite, { storage: storage() })
        const [plain, encrypted] = [engine.stream, engine.with()]
        for (const input of batches) {
          const acks = await Promise.allSettled([plain.append(input), encrypted.append(input)])
          expect(acks[1]).toEqual(acks[0])
        }
        for (const input of queries)
          expect(await readsOf(encrypted, input)).toEqual(await readsOf(plain, input))
        await engine.hw.close()
      }),
      // Each runs dozens of reads of two streams.
      shareOfRuns(1 / 3),
    )

  it.each(SUITES)('with %s', { tags: ['slow'] }, (_, suite) => expectEqual(suite, testStorage))
  it('if the storage merges blocks', { tags: ['slow'] }, () => expectEqual(aesOfNode, realistic))

  async function expectAsOnPlainStream(suite: CipherSuite, records: RecordInput[]): Promise<void> {
    const sizes: number[] = []
    const storage = gated(testStorage())
    storage.onAppend = ({ blocks: [block] }) => sizes.push(block!.data.length)
    const engine = await openEncrypted(suite, { storage })
    const following = engine.with().follow({ seqNum: 0 }, { as: 'bytes' }).batches()
    const live = following.next()
    await engine.clock.settle()
    await engine.stream.append(records)
    await engine.with().append(records)
    const plain = await engine.stream.readBatch({ seqNum: 0 })
    const stored = await engine.with().readBatch({ seqNum: 0 })
    expect(Buffer.compare(stored.data, plain.data)).toBe(0)
    expect(stored.meteredBytes).toBe(plain.meteredBytes)
    const { value } = await live
    expect(Buffer.compare(value!.data, plain.data)).toBe(0)
    // The largest frame of a session.
    expect(encodeReadBatch(value!).length).toBeLessThanOrEqual(2_097_151)
    expect(sizes[1]!).toBeLessThanOrEqual(SEALED_BLOCK_BYTES_MAX)
    await following.return?.()
  }

  it.each(CIPHERS)('with %s, for 1,000 records without content', (_, suite) =>
    expectAsOnPlainStream(suite, Array(1000).fill('')),
  )
  it.each(CIPHERS)('with %s, for 1 MiB in one record', (_, suite) =>
    expectAsOnPlainStream(suite, [new Uint8Array(MIB - 8)]),
  )
  it('for the longest encoding of a metered size: tiny headers', { tags: ['slow'] }, () => {
    const tiny: [Uint8Array, Uint8Array] = [new Uint8Array([1]), new Uint8Array([2])]
    const headers = Array(Math.floor((BATCH_ENCODED_BYTES_MAX - 26) / 8)).fill(tiny)
    return expectAsOnPlainStream(aesOfNode, [{ headers }])
  })
})

it.each([
  ['aes-256-gcm', aesOfNode, 'max assignable sequence number is 4294967295; attempted 4294967296'],
  ['aegis-256', aegis, undefined],
] as const)('%s has its ceiling of sequence numbers, commands exempt', async (_, suite, refusal) => {
  let isFar = false
  const appends: AppendRequest[] = []
  const storage = wrapped(testStorage(), { shared: false }, (session) => ({
    head: async (logId) => {
      const head = await session.head(logId)
      return isFar ? { ...head!, tail: { seqNum: 2 ** 32 - 1, timestamp: 0 } } : head
    },
    append: async (request) => void appends.push(request),
  }))
  const engine = await openEncrypted(suite, { storage })
  isFar = true
  expect(await outcome(engine.with().append('a'))).toBe('ok')
  const expected = refusal === undefined ? 'ok' : `422 invalid: ${refusal}`
  expect(await outcome(engine.with().append('b'))).toBe(expected)
  expect(await outcome(engine.with().append([fenceRecord('t'), 'b']))).toMatch(expected.slice(0, 3))
  expect(await outcome(engine.with().append(fenceRecord('t')))).toBe('ok')
  expect(appends).toHaveLength(refusal === undefined ? 4 : 2)
})

/** Follows a stream. `batches` are those received so far; `end` is `open`, `ok` or the error of the read. */
function follow(stream: Stream, query: ReadQuery = { tailOffset: 0 }) {
  const state = { batches: [] as ReadBatch<'string'>[], end: 'open' }
  const run = async () => {
    for await (const batch of stream.follow(query).batches()) state.batches.push(batch)
  }
  void outcome(run()).then((end) => {
    state.end = end
  })
  return state
}

describe.each(CIPHERS)('following with %s', (_, suite) => {
  it('delivers appends with their tails', async () => {
    const engine = await openEncrypted(suite)
    const state = follow(engine.with())
    await engine.clock.settle()
    await engine.with().append(['a', fenceRecord('t'), { body: 'b', headers: [['k', 'v']] }])
    await expect.poll(() => state.batches.length).toBe(1)
    const [batch] = state.batches
    expect(bodies(batch!)).toEqual(['a', 't', 'b'])
    expect(batch).toMatchObject({ tail: { seqNum: 3, timestamp: 1_000_000 }, count: 3, lastSeqNum: 2 })
    expect(batch!.meteredBytes).toBe(9 + 8 + 2 + 5 + 1 + 8 + 2 + 3)
  })

  it('ends only the followers with another key', async () => {
    const engine = await openEncrypted(suite)
    const [right, ...wrong] = [1, 2, 2].map((fill) => follow(engine.with(key(fill))))
    await engine.clock.settle()
    await engine.with().append('a')
    const failed = '400 decryption_failed: record decryption failed'
    await expect.poll(() => wrong.map(({ end }) => end)).toEqual([failed, failed])
    await engine.with().append('b')
    await expect.poll(() => right!.batches.map(bodies)).toEqual([['a'], ['b']])
    expect(engine.hw.stats().openReads).toBe(1)
  })

  it.each<[string, ReadQuery, string[]]>([
    ['the whole of it', { count: 3 }, ['a', 'b', 'c']],
    ['a part of it', { count: 2 }, ['a', 'b']],
    ['a part of it by bytes', { bytes: 20 }, ['a', 'b']],
    ['nothing of it by bytes', { bytes: 8 }, []],
    ['nothing of it by time', { until: 1_000_000 }, []],
  ])('delivers of a batch what the limits admit: %s', async (_, bounds, expected) => {
    const engine = await openEncrypted(suite)
    const state = follow(engine.with(), { seqNum: 0, waitMs: 60_000, ...bounds })
    await engine.clock.settle()
    await engine.with().append(['a', 'b', 'c'])
    await expect.poll(() => state.end).toBe('ok')
    expect(state.batches.flatMap(bodies)).toEqual(expected)
  })

  it('delivers commands with any key', async () => {
    const engine = await openEncrypted(suite)
    const state = follow(engine.with(key(2)), { seqNum: 0, count: 1, waitMs: 60_000 })
    await engine.clock.settle()
    await engine.with().append([fenceRecord('t'), 'a'])
    await expect.poll(() => state.end).toBe('ok')
    expect(state.batches.map(bodies)).toEqual([['t']])
  })

  it('reads history when it falls behind', async () => {
    const engine = await openEncrypted(suite, { limits: { followerLagBatches: 2 } })
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
