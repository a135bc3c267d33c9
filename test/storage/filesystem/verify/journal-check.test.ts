import { describe, expect, test } from 'vitest'
import { block, NOW } from '../../../../adapters/conformance/log-writer.ts'
import type { Change } from '../../../../adapters/storage/filesystem/state/change.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import { encodeRecords } from '../../../../src/storage/block-codec.ts'
import type { Collection, StoredBlock } from '../../../../src/storage/contract.ts'
import { encodeSegment, encodeSkeleton } from '../../../../src/storage/sealed-block.ts'
import { appendOf, CREATED, freed, journalDisk } from '../crafted-disk.ts'

const JOURNAL = 'journal-0000000001'
const FIRST = block({ firstSeqNum: 0, count: 2 })
const SECOND = block({ firstSeqNum: 2, count: 2 })
const EMPTY = new Uint8Array(0)

/** Complete frames with valid checksums whose content no engine wrote. */
describe('verifying a journal', () => {
  test('reports nothing for a sound journal', async () => {
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
    ['a block after a gap', [appendOf(block({ firstSeqNum: 5 }))], /begins at 5, but the tail is 2/],
    ['an overlapping block', [appendOf(block({ firstSeqNum: 1 }))], /begins at 1, but the tail is 2/],
    [
      'a head beyond its block',
      [appendOf(SECOND, { tail: { seqNum: 9, timestamp: SECOND.lastTimestamp } })],
      /the tail is 9 at \d+, but the block ends with 4/,
    ],
    [
      'a head with a wrong timestamp',
      [appendOf(SECOND, { tail: { seqNum: 4, timestamp: NOW + 77 } })],
      /the tail is 4 at \d+77, but the block ends with 4/,
    ],
    ['a head of a wrong epoch', [appendOf(SECOND, { epoch: 2 })], /epoch 2, but its log has epoch 1/],
    [
      'a trim point beyond the tail',
      [appendOf(SECOND, { trimPoint: 5 })],
      /trim point 5 is beyond the tail 4/,
    ],
    [
      'descending trims',
      [appendOf(SECOND, { trimPoint: 2, trims: trims(2, 1) })],
      /the trim to 1 follows one to 2/,
    ],
    [
      'too many trims',
      [appendOf(SECOND, { trimPoint: 2, trims: trims(1, 1, 1, 1) })],
      /4 trims are recorded/,
    ],
    [
      'a trim point that moves back',
      [appendOf(SECOND, { trimPoint: 2 }), appendOf(block({ firstSeqNum: 4 }), { trimPoint: 1 })],
      /trim point 2 moves back to 1/,
    ],
    [
      'a timestamp before that of the previous block',
      [appendOf(block({ firstSeqNum: 2, timestamp: NOW - 1 }))],
      /begins at time \d+, before \d+/,
    ],
    [
      'a wrong metered size',
      [appendOf({ ...SECOND, meteredBytes: SECOND.meteredBytes + 1 })],
      /a block has 20 metered bytes; expected 21/,
    ],
    ['a wrong count', [appendOf({ ...SECOND, endSeqNum: 5 })], /a block has 2 records; expected 3/],
    ['no records', [appendOf({ ...SECOND, endSeqNum: 2, data: EMPTY })], /a block without records/],
    [
      'a gap in the sequence numbers of a block',
      [appendOf(recordsAt([2, 4], [1, 1]))],
      /record 3 has sequence number 4/,
    ],
    ['descending timestamps', [appendOf(recordsAt([2, 3, 4], [1, 3, 2]))], /record 4 is older/],
    [
      'timestamps that do not match the block',
      [appendOf({ ...SECOND, lastTimestamp: NOW + 50 })],
      /timestamps of a block do not match/,
    ],
    ['data that is not a block', [appendOf({ ...SECOND, data: new Uint8Array([1, 2]) })], /not a block/],
    ['a log that already exists', [{ ...CREATED, log: 2 } as Change], /log a already exists/],
    ['a log number used before', [{ ...CREATED, id: 'b' } as Change], /log number 1 was used before/],
    ['a missing log', [{ kind: 'set-epoch', log: 7, epoch: 2 }], /log 7 does not exist/],
    ['a version used before', [put('settings', 'k', 4), put('settings', 'l', 4)], /document version 4/],
    ['an unknown collection', [put('drinks' as Collection, 'k', 1)], /unknown collection/],
    [
      'a document that is not JSON',
      [{ ...put('tokens', 'k', 1), text: '{"secret' } as Change],
      /of tokens is not valid JSON$/,
    ],
    ['a key that is too long', [put('settings', 'ä'.repeat(513), 1)], /a key of 1026 bytes/],
    [
      'a wrong number of freed bytes',
      [freed(0, 2, 1, 1)],
      /counts 1 blocks with 1 .* but has 1 blocks with 20/,
    ],
    ['a wrong number of freed blocks', [freed(0, 2, 2, 20)], /counts 2 blocks with 20 .* but has 1 blocks/],
    ['a partly freed block', [freed(0, 1, 1, 20)], /^the freed range from 0 to 1 counts/],
    ['a freed range after the last block', [freed(2, 4, 1, 20)], /but has 0 blocks/],
    [
      'a freed block that neither expires nor was trimmed',
      [freed(0, 2, 1, 20)],
      /from 0 to 2 neither expires nor was trimmed$/,
    ],
    [
      'a freed block beyond the trim point',
      [appendOf(SECOND, { trimPoint: 3 }), freed(0, 4, 2, 40)],
      /from 0 to 4 neither expires nor was trimmed$/,
    ],
    [
      'the deletion of a missing document',
      [{ kind: 'delete', collection: 'settings', key: 'secret' }],
      /^a deleted document of settings does not exist$/,
    ],
    [
      'a plain block after an encrypted one',
      [appendOf(sealedBlock(2)), appendOf(block({ firstSeqNum: 3 }))],
      /is plain, but its log is aes|is aes-256-gcm, but its log/,
    ],
    [
      'an encrypted block of a wrong metered size',
      [appendOf({ ...sealedBlock(2), meteredBytes: 99 })],
      /a block has 20 metered bytes; expected 99/,
    ],
    ['an encrypted block that is too short', [appendOf(sealedBlock(2, 500))], /length of the ciphertext/],
  ])('reports %s', async (_, changes, problem) => {
    const disk = await journalDisk([CREATED, appendOf(FIRST), ...changes])
    const { problems } = await verifyFiles(disk, { ofEngine: false })
    expect(problems[0]?.problem).toMatch(problem)
    expect(problems[0]!.offset).toBeGreaterThan(32)
    // The check of the whole log may report a consequence.
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
  ])('accepts freeing a block that %s', async (_, changes) => {
    const report = await verifyFiles(await journalDisk([CREATED, ...changes]), { ofEngine: false })
    expect(report.problems).toEqual([])
  })

  test('accepts a lower epoch, which callers may set freely', async () => {
    const disk = await journalDisk([
      { ...CREATED, epoch: 9 } as Change,
      { kind: 'set-epoch', log: 1, epoch: 2 },
    ])
    expect(await verifyFiles(disk, { ofEngine: false })).toMatchObject({ problems: [] })
  })

  test('checks an encrypted block as far as possible without its key', async () => {
    const disk = await journalDisk([CREATED, appendOf(sealedBlock(0))])
    expect(await verifyFiles(disk, { ofEngine: false })).toMatchObject({ problems: [], records: 1 })
  })

  test('keeps 1,000 problems and counts all of them', async () => {
    const puts = Array.from({ length: 1200 }, () => put('drinks' as Collection, 'k', 0))
    const report = await verifyFiles(
      await journalDisk(puts.map((put, i) => ({ ...put, version: i + 1 }) as Change)),
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

/** A block whose metadata matches its first and last record. */
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
