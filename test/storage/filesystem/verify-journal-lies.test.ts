import { describe, expect, test } from 'vitest'
import type { Change } from '../../../adapters/storage/filesystem/changes.ts'
import { verifyFiles } from '../../../adapters/storage/filesystem/verify/verify-files.ts'
import { encodeRecords } from '../../../src/storage/block-codec.ts'
import { block, NOW } from '../../../src/storage/conformance/blocks.ts'
import type { Collection, StoredBlock } from '../../../src/storage/contract.ts'
import { encodeSegment, encodeSkeleton } from '../../../src/storage/sealed-block.ts'
import { appendOf, CREATED, freed, journalDisk } from './lying-disk.ts'

const JOURNAL = 'journal-0000000001'
const FIRST = block({ firstSeqNum: 0, count: 2 })
const SECOND = block({ firstSeqNum: 2, count: 2 })
const EMPTY = new Uint8Array(0)

/** Whole frames with right checksums, that say what no engine wrote. */
describe('in a journal', () => {
  test('what is true is sound', async () => {
    const disk = await journalDisk([CREATED, appendOf(FIRST), appendOf(SECOND), put('settings', 'k', 1)])
    expect(await verifyFiles(disk, { ofEngine: false })).toMatchObject({
      problems: [],
      notes: [],
      files: 1,
      documents: 1,
      logs: 1,
      blocks: 2,
      records: 4,
    })
  })

  test.each<[string, readonly Change[], RegExp]>([
    ['a block behind a gap', [appendOf(block({ firstSeqNum: 5 }))], /begins at 5, and the tail is at 2/],
    ['a block that overlaps', [appendOf(block({ firstSeqNum: 1 }))], /begins at 1, and the tail is at 2/],
    [
      'a head beyond its block',
      [appendOf(SECOND, { tail: { seqNum: 9, timestamp: SECOND.lastTimestamp } })],
      /the tail 9 at \d+, and its block ends with 4/,
    ],
    [
      'a head with another timestamp',
      [appendOf(SECOND, { tail: { seqNum: 4, timestamp: NOW + 77 } })],
      /the tail 4 at \d+77, and its block ends with 4/,
    ],
    ['a head of another epoch', [appendOf(SECOND, { epoch: 2 })], /epoch 2 in a log of epoch 1/],
    [
      'a trim point behind the tail',
      [appendOf(SECOND, { trimPoint: 5 })],
      /trim point 5 is behind the tail 4/,
    ],
    [
      'trims that go back',
      [appendOf(SECOND, { trimPoint: 2, trims: trims(2, 1) })],
      /a trim to 1 is noted behind/,
    ],
    ['too many trims', [appendOf(SECOND, { trimPoint: 2, trims: trims(1, 1, 1, 1) })], /4 trims are noted/],
    [
      'a trim point that goes back',
      [appendOf(SECOND, { trimPoint: 2 }), appendOf(block({ firstSeqNum: 4 }), { trimPoint: 1 })],
      /the trim point 2 goes back to 1/,
    ],
    [
      'a timestamp before the one in front',
      [appendOf(block({ firstSeqNum: 2, timestamp: NOW - 1 }))],
      /begins at time \d+, before \d+/,
    ],
    [
      'a wrong metered size',
      [appendOf({ ...SECOND, meteredBytes: SECOND.meteredBytes + 1 })],
      /a block of 21 metered bytes has records of 20/,
    ],
    ['a wrong count', [appendOf({ ...SECOND, endSeqNum: 5 })], /a block of 3 records holds 2/],
    ['no records', [appendOf({ ...SECOND, endSeqNum: 2, data: EMPTY })], /a block without records/],
    ['numbers of records with a gap', [appendOf(recordsAt([2, 4], [1, 1]))], /record 3 has the number 4/],
    ['records that grow younger', [appendOf(recordsAt([2, 3, 4], [1, 3, 2]))], /record 4 is older/],
    ['other timestamps than it says', [appendOf({ ...SECOND, lastTimestamp: NOW + 50 })], /other timestamps/],
    ['what is no block', [appendOf({ ...SECOND, data: new Uint8Array([1, 2]) })], /not a block/],
    ['a log that exists', [{ ...CREATED, log: 2 } as Change], /a log a exists/],
    [
      'a number of a log that was given',
      [{ ...CREATED, id: 'b' } as Change],
      /number 1 of a log was given before/,
    ],
    ['a log that there is not', [{ kind: 'set-epoch', log: 7, epoch: 2 }], /there is no log 7/],
    [
      'a version that was given',
      [put('settings', 'k', 4), put('settings', 'l', 4)],
      /version 4 of a document/,
    ],
    ['an unknown collection', [put('drinks' as Collection, 'k', 1)], /unknown collection/],
    [
      'a document that is no JSON',
      [{ ...put('tokens', 'k', 1), text: '{"secret' } as Change],
      /of tokens is no JSON$/,
    ],
    ['a key that is too long', [put('settings', 'ä'.repeat(513), 1)], /a key of 1026 bytes/],
    [
      'freed bytes that there were not',
      [freed(0, 2, 1, 1)],
      /1 blocks with 1 .* are freed of 1 blocks with 20/,
    ],
    ['freed blocks that there were not', [freed(0, 2, 2, 20)], /2 blocks with 20 .* are freed of 1 blocks/],
    ['a part of a block that is freed', [freed(0, 1, 1, 20)], /^from 0 to 1, /],
    ['what is freed behind the last block', [freed(2, 4, 1, 20)], /are freed of 0 blocks/],
    [
      'what is freed and neither expires nor was trimmed',
      [freed(0, 2, 1, 20)],
      /from 0 to 2 neither expires nor was trimmed$/,
    ],
    [
      'what is freed behind the trim point',
      [appendOf(SECOND, { trimPoint: 3 }), freed(0, 4, 2, 40)],
      /from 0 to 4 neither expires nor was trimmed$/,
    ],
    [
      'a deletion of what there is not',
      [{ kind: 'delete', collection: 'settings', key: 'secret' }],
      /^a document of settings is deleted that there is not$/,
    ],
    [
      'a plain block behind a sealed one',
      [appendOf(sealedBlock(2)), appendOf(block({ firstSeqNum: 3 }))],
      /is aes-256-gcm, and others/,
    ],
    [
      'a sealed block of another metered size',
      [appendOf({ ...sealedBlock(2), meteredBytes: 99 })],
      /a block of 99 metered bytes has records of 20/,
    ],
    ['a sealed block that is too short', [appendOf(sealedBlock(2, 500))], /another length than its records/],
  ])('%s is a problem', async (_, changes, problem) => {
    const disk = await journalDisk([CREATED, appendOf(FIRST), ...changes])
    const { problems } = await verifyFiles(disk, { ofEngine: false })
    expect(problems[0]?.problem).toMatch(problem)
    expect(problems[0]!.offset).toBeGreaterThan(32)
    // What comes of it may be told as well, when the log is looked at as a whole.
    expect(problems.length).toBeLessThanOrEqual(2)
    for (const { file } of problems) expect(file).toBe(JOURNAL)
  })

  test.each<[string, readonly Change[]]>([
    ['was trimmed', [appendOf(FIRST), appendOf(SECOND, { trimPoint: 2 }), freed(0, 2, 1, 20)]],
    ['may have expired', [appendOf({ ...FIRST, expiresAt: NOW }), freed(0, 2, 1, 20)]],
    [
      'was trimmed or may have expired',
      [appendOf(FIRST), appendOf({ ...SECOND, expiresAt: NOW }, { trimPoint: 2 }), freed(0, 4, 2, 40)],
    ],
  ])('what %s may be freed', async (_, changes) => {
    const report = await verifyFiles(await journalDisk([CREATED, ...changes]), { ofEngine: false })
    expect(report.problems).toEqual([])
  })

  test('an epoch may go back: a storage is told what it is', async () => {
    const disk = await journalDisk([
      { ...CREATED, epoch: 9 } as Change,
      { kind: 'set-epoch', log: 1, epoch: 2 },
    ])
    expect(await verifyFiles(disk, { ofEngine: false })).toMatchObject({ problems: [] })
  })

  test('a sealed block is looked into as far as that goes without its key', async () => {
    const disk = await journalDisk([CREATED, appendOf(sealedBlock(0))])
    expect(await verifyFiles(disk, { ofEngine: false })).toMatchObject({ problems: [], records: 1 })
  })

  test('problems are kept up to a thousand, and all are counted', async () => {
    const lies = Array.from({ length: 1200 }, () => put('drinks' as Collection, 'k', 0))
    const report = await verifyFiles(
      await journalDisk(lies.map((lie, i) => ({ ...lie, version: i + 1 }) as Change)),
    )
    expect([report.problems.length, report.problemCount]).toEqual([1000, 1200])
  })
})

function put(collection: Collection, key: string, version: number): Change {
  return { kind: 'put', collection, key, version, text: '1' }
}

function trims(...points: number[]) {
  return points.map((point) => ({ point, at: NOW }))
}

/** A block that says of its records what is true of the first and last. */
function recordsAt(seqNums: readonly number[], timestamps: readonly number[]): StoredBlock {
  const records = seqNums.map((seqNum, i) => {
    return { seqNum, timestamp: NOW + 10 + timestamps[i]!, headers: [], body: EMPTY }
  })
  return {
    firstSeqNum: seqNums[0]!,
    endSeqNum: seqNums[0]! + records.length,
    firstTimestamp: records[0]!.timestamp,
    lastTimestamp: records.at(-1)!.timestamp,
    meteredBytes: 8 * records.length,
    expiresAt: null,
    data: encodeRecords(records),
  }
}

function sealedBlock(seqNum: number, meteredBytes = 20): StoredBlock {
  const timestamp = NOW + seqNum
  const skeleton = encodeSkeleton([{ seqNum, timestamp, headers: [], body: EMPTY }])
  const sealed = { nonce: new Uint8Array(12), ciphertext: new Uint8Array(16 + 14) }
  const data = encodeSegment({ cipher: 'aes-256-gcm', meteredBytes, skeleton, sealed })
  return {
    firstSeqNum: seqNum,
    endSeqNum: seqNum + 1,
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    meteredBytes,
    expiresAt: null,
    data,
  }
}
