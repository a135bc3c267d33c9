import { extendedExpiry, isExpired, reclaimablePoint } from '../../src/core/retention.ts'
import { compareUtf8 } from '../../src/model/bytes.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { decodeRecords } from '../../src/storage/block-codec.ts'
import type {
  Head,
  JsonValue,
  ListRange,
  ReadRange,
  ReclaimLimits,
  StoredBlock,
} from '../../src/storage/contract.ts'
import { equal, ok } from './harness.ts'
import { type ExpectedBlock, recordsOfBlocks } from './log-writer.ts'

export interface ModelDocument {
  readonly value: JsonValue
  /** The version as the storage returned it. */
  readonly version: number
}

export interface ModelLog {
  readonly head: Head
  readonly appended: readonly ExpectedBlock[]
}

/**
 * A naive implementation of the storage contract, which the random tests compare a storage with. Changes are
 * made on a copy.
 */
export class Model {
  readonly documents: Map<string, ModelDocument>
  readonly logs: Map<string, ModelLog>

  constructor(
    documents: ReadonlyMap<string, ModelDocument> = new Map(),
    logs: ReadonlyMap<string, ModelLog> = new Map(),
  ) {
    this.documents = new Map(documents)
    this.logs = new Map(logs)
  }

  copy(): Model {
    return new Model(this.documents, this.logs)
  }

  list({ prefix, after, limit }: ListRange): string[] {
    return [...this.documents.keys()]
      .filter((key) => key.startsWith(prefix) && compareUtf8(key, after) > 0)
      .sort(compareUtf8)
      .slice(0, limit)
  }

  /**
   * Removes the expired blocks at the beginning of each log. Later ones may wait for those before them, and
   * blocks below a trim point may survive if they were merged with others.
   */
  reclaim({ now, trimmedBefore }: ReclaimLimits): void {
    for (const [logId, { head, appended }] of this.logs) {
      const point = reclaimablePoint(head.trims, trimmedBefore)
      const kept: ExpectedBlock[] = []
      for (const { block, mayBeFreed } of appended) {
        const hasExpired = isExpired(extendedExpiry(block, head.extensions), now)
        if (hasExpired && kept.length === 0) continue
        kept.push({
          block,
          isExtended: head.extensions !== undefined,
          mayBeFreed: mayBeFreed || hasExpired || block.endSeqNum <= point,
        })
      }
      this.logs.set(logId, { head, appended: kept })
    }
  }
}

/**
 * Throws unless `blocks` is a valid result of reading `range` from a log to which `appended` was written.
 * Compares records instead of blocks, because adjacent blocks may have been merged.
 */
export function checkRead(
  appended: readonly ExpectedBlock[],
  range: ReadRange,
  blocks: readonly StoredBlock[],
): void {
  const description = `read ${JSON.stringify(range)}`
  checkSelection(range, blocks, description)
  const known = new Map<number, { record: SequencedRecord; expected: ExpectedBlock }>()
  for (const expected of appended) {
    for (const record of decodeRecords(expected.block.data)) known.set(record.seqNum, { record, expected })
  }
  const returned = new Set<number>()
  for (const block of blocks) {
    for (const record of recordsOfBlocks([block])) {
      const match = known.get(record.seqNum)
      ok(match !== undefined, `${description}: returned record ${record.seqNum}, which is not in the log`)
      equal(record, match.record, `${description}: record ${record.seqNum}`)
      const { expiresAt } = match.expected.block
      const isLater = block.expiresAt === null || block.expiresAt > (expiresAt ?? Number.POSITIVE_INFINITY)
      if (!(match.expected.isExtended && isLater)) {
        equal(block.expiresAt, expiresAt, `${description}: expiry of record ${record.seqNum}`)
      }
      returned.add(record.seqNum)
    }
  }
  recordsOfBlocks(blocks)
  if (range.unsplit) checkUnsplit(appended, blocks, description)
  const end = Math.min(range.endSeqNum, stoppedAt(range, blocks))
  for (const { record, expected } of known.values()) {
    if (expected.mayBeFreed || record.seqNum >= end || !isWanted(range, record)) continue
    ok(returned.has(record.seqNum), `${description}: left out record ${record.seqNum}`)
  }
}

function checkUnsplit(
  appended: readonly ExpectedBlock[],
  blocks: readonly StoredBlock[],
  description: string,
): void {
  for (const { firstSeqNum, endSeqNum } of blocks) {
    const cuts = ({ block }: ExpectedBlock) =>
      [firstSeqNum, endSeqNum].some((cut) => block.firstSeqNum < cut && cut < block.endSeqNum)
    ok(!appended.some(cuts), `${description}: returned a part of an append, ${firstSeqNum} to ${endSeqNum}`)
  }
}

function checkSelection(
  { from, endSeqNum, bytesMax }: ReadRange,
  blocks: readonly StoredBlock[],
  description: string,
): void {
  let bytes = 0
  for (const [index, block] of blocks.entries()) {
    ok(
      block.firstSeqNum < endSeqNum,
      `${description}: returned block ${block.firstSeqNum}, which begins at or after the end`,
    )
    if ('seqNum' in from) {
      ok(
        block.endSeqNum > from.seqNum,
        `${description}: returned a block that ends at ${block.endSeqNum}, before the start`,
      )
      ok(from.seqNum < endSeqNum, `${description}: returned a block for an empty range`)
    } else {
      ok(block.lastTimestamp >= from.timestamp, `${description}: returned a block of before the timestamp`)
    }
    ok(index === 0 || bytes < bytesMax, `${description}: went on after the block that reached bytesMax`)
    bytes += block.meteredBytes
  }
}

/** The sequence number at which `bytesMax` ended the read; infinite if it did not. */
function stoppedAt({ bytesMax }: ReadRange, blocks: readonly StoredBlock[]): number {
  const last = blocks.at(-1)
  if (last === undefined) return Number.POSITIVE_INFINITY
  const bytes = blocks.reduce((sum, block) => sum + block.meteredBytes, 0)
  return bytes >= bytesMax ? last.endSeqNum : Number.POSITIVE_INFINITY
}

function isWanted({ from }: ReadRange, record: SequencedRecord): boolean {
  return 'seqNum' in from ? record.seqNum >= from.seqNum : record.timestamp >= from.timestamp
}
