import type { SequencedRecord } from '../../model/record.ts'
import { decodeRecords } from '../block-codec.ts'
import type { ReadRange, StoredBlock } from '../contract.ts'
import { equal, ok } from './assert.ts'
import { recordsOf } from './blocks.ts'

/** A block as it was appended. */
export interface ExpectedBlock {
  readonly block: StoredBlock
  /** Whether the storage was allowed to free it. */
  mayBeGone: boolean
}

/**
 * Fails unless `blocks` is what `read` may return for `range` from a log that was given `appended`. Knows that
 * neighbours may have been merged, so it compares records, not blocks.
 */
export function checkRead(
  appended: readonly ExpectedBlock[],
  range: ReadRange,
  blocks: readonly StoredBlock[],
): void {
  const what = `read ${JSON.stringify(range)}`
  checkSelection(range, blocks, what)
  const known = new Map<number, { record: SequencedRecord; expected: ExpectedBlock }>()
  for (const expected of appended) {
    for (const record of decodeRecords(expected.block.data)) known.set(record.seqNum, { record, expected })
  }
  const returned = new Set<number>()
  for (const block of blocks) {
    for (const record of recordsOf([block])) {
      const match = known.get(record.seqNum)
      ok(match !== undefined, `${what}: returned record ${record.seqNum}, which is not in the log`)
      equal(record, match.record, `${what}: record ${record.seqNum}`)
      equal(block.expiresAt, match.expected.block.expiresAt, `${what}: expiry of record ${record.seqNum}`)
      returned.add(record.seqNum)
    }
  }
  recordsOf(blocks)
  if (range.unsplit) checkUnsplit(appended, blocks, what)
  const end = Math.min(range.endSeqNum, stoppedAt(range, blocks))
  for (const { record, expected } of known.values()) {
    if (expected.mayBeGone || record.seqNum >= end || !isWanted(range, record)) continue
    ok(returned.has(record.seqNum), `${what}: left out record ${record.seqNum}`)
  }
}

function checkUnsplit(
  appended: readonly ExpectedBlock[],
  blocks: readonly StoredBlock[],
  what: string,
): void {
  for (const { firstSeqNum, endSeqNum } of blocks) {
    const cuts = ({ block }: ExpectedBlock) =>
      [firstSeqNum, endSeqNum].some((cut) => block.firstSeqNum < cut && cut < block.endSeqNum)
    ok(!appended.some(cuts), `${what}: returned a part of an append, ${firstSeqNum} to ${endSeqNum}`)
  }
}

function checkSelection(
  { from, endSeqNum, bytesMax }: ReadRange,
  blocks: readonly StoredBlock[],
  what: string,
): void {
  let bytes = 0
  for (const [index, block] of blocks.entries()) {
    ok(
      block.firstSeqNum < endSeqNum,
      `${what}: returned block ${block.firstSeqNum}, which begins behind the end`,
    )
    if ('seqNum' in from) {
      ok(
        block.endSeqNum > from.seqNum,
        `${what}: returned a block that ends at ${block.endSeqNum}, before the start`,
      )
      ok(from.seqNum < endSeqNum, `${what}: returned a block for an empty range`)
    } else {
      ok(block.lastTimestamp >= from.timestamp, `${what}: returned a block of before the timestamp`)
    }
    ok(index === 0 || bytes < bytesMax, `${what}: went on after the block that reached bytesMax`)
    bytes += block.meteredBytes
  }
}

/** Where `bytesMax` ended the read; infinite when it did not. */
function stoppedAt({ bytesMax }: ReadRange, blocks: readonly StoredBlock[]): number {
  const last = blocks.at(-1)
  if (last === undefined) return Number.POSITIVE_INFINITY
  const bytes = blocks.reduce((sum, block) => sum + block.meteredBytes, 0)
  return bytes >= bytesMax ? last.endSeqNum : Number.POSITIVE_INFINITY
}

function isWanted({ from }: ReadRange, record: SequencedRecord): boolean {
  return 'seqNum' in from ? record.seqNum >= from.seqNum : record.timestamp >= from.timestamp
}
