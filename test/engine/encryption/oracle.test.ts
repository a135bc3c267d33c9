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
import type { Storage } from '../../../src/storage/contract.ts'
import { realistic } from '../../storage/wrapped-storage.ts'
import { testStorage } from '../../support/index.ts'
import { shareOfRuns } from '../../support/property-runs.ts'
import { aesOfNode, openEncrypted, SUITES } from './support.ts'

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
const query: fc.Arbitrary<ReadQuery> = fc
  .record({
    start: fc.oneof(
      fc.record({ seqNum: fc.nat(25) }),
      fc.record({ timestamp: fc.integer({ min: 999_975, max: 1_000_001 }) }),
      fc.record({ tailOffset: fc.nat(25) }),
    ),
    bounds: fc.record({
      count: few,
      bytes: fc.option(fc.nat(200), { nil: undefined }),
      until: fc.option(fc.integer({ min: 999_975, max: 1_000_001 }), { nil: undefined }),
      clamp: fc.boolean(),
    }),
  })
  .map(({ start, bounds }) => ({ ...start, ...bounds }))

function fieldsOf({ data, count, meteredBytes, lastSeqNum, tail, records }: ReadBatch<'string'>) {
  return { data: Buffer.from(data).toString('hex'), count, meteredBytes, lastSeqNum, tail, records }
}

async function unary(stream: Stream, query: ReadQuery) {
  return stream.readBatch(query).then(fieldsOf, (error: HeadwaterError) => error.code)
}

async function session(stream: Stream, query: ReadQuery) {
  const batches: unknown[] = []
  try {
    for await (const batch of stream.follow({ ...query, waitMs: 0 }).batches()) batches.push(fieldsOf(batch))
  } catch (error) {
    batches.push((error as HeadwaterError).code)
  }
  return batches
}

/** An encrypted stream returns the same bytes as a plain stream after the same appends. */
async function expectEqual(suite: CipherSuite, storage: () => Storage): Promise<void> {
  const script = {
    batches: fc.array(batch, { minLength: 1, maxLength: 6 }),
    queries: fc.array(query, { minLength: 5 }),
  }
  await fc.assert(
    fc.asyncProperty(fc.record(script), async ({ batches, queries }) => {
      const engine = await openEncrypted(suite, { storage: storage() })
      const [plain, encrypted] = [engine.stream, engine.with()]
      for (const input of batches) {
        const acks = await Promise.allSettled([plain.append(input), encrypted.append(input)])
        expect(acks[1]).toEqual(acks[0])
      }
      for (const input of queries) {
        expect(await unary(encrypted, input)).toEqual(await unary(plain, input))
        expect(await session(encrypted, input)).toEqual(await session(plain, input))
      }
      await engine.hw.close()
    }),
    // Each runs dozens of reads of two streams.
    shareOfRuns(1 / 3),
  )
}

describe('an encrypted stream equals a plain one', { tags: ['slow'] }, () => {
  it.each(SUITES)('with %s', (_, suite) => expectEqual(suite, testStorage))

  it('if the storage merges blocks', () => expectEqual(aesOfNode, realistic))
})
