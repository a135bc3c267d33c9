import fc from 'fast-check'
import { block as blockOf } from '../../../adapters/conformance/log-writer.ts'
import type { Change } from '../../../adapters/storage/filesystem/state/change.ts'
import type { BlockFacts } from '../../../adapters/storage/filesystem/state/log.ts'
import type { RunFacts, SegmentFacts } from '../../../adapters/storage/filesystem/state/segment.ts'
import type { SeqRange } from '../../../adapters/storage/filesystem/state/seq-ranges.ts'
import type { Head, StoredBlock } from '../../../src/storage/contract.ts'
import { bytes, fencingToken, integer, smallInteger, text } from './models.ts'

/** The content of the files of the filesystem storage. */

export const expiry = fc.option(integer, { nil: null })
export const salt = fc.nat(0xffff_ffff)

const block: fc.Arbitrary<BlockFacts> = fc
  .tuple(smallInteger, smallInteger, smallInteger, smallInteger, integer, expiry)
  .map(([firstSeqNum, count, firstTimestamp, later, meteredBytes, expiresAt]) => ({
    firstSeqNum,
    endSeqNum: firstSeqNum + count,
    firstTimestamp,
    lastTimestamp: firstTimestamp + later,
    meteredBytes,
    expiresAt,
  }))

/** Blocks are never empty. */
const data = bytes.filter(({ length }) => length > 0)

/** A block of several pages. */
export const largeBlock: fc.Arbitrary<StoredBlock> = fc
  .tuple(smallInteger, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 6_000, max: 20_000 }))
  .map(([firstSeqNum, count, bodyBytes]) => blockOf({ firstSeqNum, count, bodyBytes }))

export const storedBlock: fc.Arbitrary<StoredBlock> = fc
  .tuple(block, data)
  .map(([facts, of]) => ({ ...facts, data: of }))

const position = fc.record({ seqNum: integer, timestamp: integer })

export const head: fc.Arbitrary<Head> = fc.record({
  epoch: integer,
  tail: position,
  trimPoint: integer,
  fencingToken,
  appendId: text,
  appendedAt: integer,
  trims: fc.array(fc.record({ point: integer, at: integer }), { maxLength: 3 }),
})

const ranges: fc.Arbitrary<SeqRange[]> = fc.array(fc.record({ from: integer, to: integer }), { maxLength: 3 })

export const segment: fc.Arbitrary<SegmentFacts> = fc.record({
  number: integer,
  salt,
  bytes: integer,
  journal: integer,
})

export const run: fc.Arbitrary<RunFacts> = fc
  .tuple(
    fc.record({
      segment: fc.integer({ min: 1, max: 4 }),
      offset: smallInteger,
      indexBytes: smallInteger,
      lastTimestamp: integer,
      blocks: integer,
      meteredBytes: integer,
      liveBytes: integer,
      minExpiry: expiry,
      maxExpiry: expiry,
      holes: ranges,
    }),
    fc.tuple(smallInteger, smallInteger, smallInteger),
  )
  .map(([facts, [chunksBytes, firstSeqNum, count]]) => ({
    ...facts,
    bytes: facts.indexBytes + chunksBytes + 1,
    firstSeqNum,
    endSeqNum: firstSeqNum + count,
  }))

const collection = fc.constantFrom('basins', 'streams', 'deadlines', 'tokens', 'usage', 'settings')

export const document = fc.record({ collection, key: text, version: integer, text: fc.json({ maxDepth: 1 }) })

const commitChange: fc.Arbitrary<Change> = fc.oneof(
  document.map((put) => ({ kind: 'put' as const, ...put })),
  fc.record({ kind: fc.constant('delete' as const), collection, key: text }),
  fc.record({
    kind: fc.constant('create-log' as const),
    log: integer,
    id: text,
    epoch: integer,
    createdAt: integer,
    start: fc.record({ tail: position, fencingToken }),
  }),
  fc.record({ kind: fc.constant('set-epoch' as const), log: integer, epoch: integer }),
  fc.record({ kind: fc.constant('delete-log' as const), log: integer }),
  fc.record({
    kind: fc.constant('free' as const),
    log: integer,
    ranges: fc.array(
      fc.record({ from: integer, to: integer, blocks: integer, meteredBytes: integer, bytes: integer }),
      { maxLength: 3 },
    ),
  }),
  fc.record({
    kind: fc.constant('compact' as const),
    segment,
    replaced: fc.array(integer, { maxLength: 3 }),
    runs: fc.array(fc.record({ log: integer, run, omitted: ranges }), { maxLength: 2 }),
  }),
  fc.constant({ kind: 'closed' as const }),
)

export const append: fc.Arbitrary<Extract<Change, { kind: 'append' }>> = fc.record({
  kind: fc.constant('append' as const),
  log: integer,
  block: storedBlock,
  head,
})

/** The changes of a frame, at most one of them an append. */
export const changes: fc.Arbitrary<Change[]> = fc
  .tuple(fc.array(commitChange, { maxLength: 4 }), fc.option(append, { nil: undefined }))
  .map(([commit, last]) => (last === undefined ? commit : [...commit, last]))
