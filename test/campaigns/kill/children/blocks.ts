import { utf8 } from '../../../../src/model/bytes.ts'
import { meteredBytesOf, type SequencedRecord } from '../../../../src/model/record.ts'
import { encodeRecords } from '../../../../src/storage/block-codec.ts'
import type { Head, StoredBlock } from '../../../../src/storage/contract.ts'

/** Small, so that the process is killed while it rolls and merges. */
export const ROLL_BYTES = 50_000
/** Blocks of at least this length are not copied, in bytes. */
export const LARGE_BLOCK_BYTES = 3_000

export const LOG_IDS = Array.from({ length: 8 }, (_, i) => `log-${i}`)

/**
 * The records of a writer depend only on the log and the position, so that nothing has to be remembered to
 * check them.
 */
function recordOf(logId: string, seqNum: number): SequencedRecord {
  const bytes = seqNum % 16 === 5 ? 2 * LARGE_BLOCK_BYTES : (seqNum * 37) % 300
  const body = utf8(`${logId}#${seqNum}#${'x'.repeat(bytes)}`)
  return { seqNum, timestamp: timestampOf(seqNum), headers: [], body }
}

function timestampOf(seqNum: number): number {
  return 1_700_000_000_000 + seqNum
}

/** The metadata of a block that does not depend on its records. */
export function placeAt(firstSeqNum: number): Pick<StoredBlock, 'firstSeqNum' | 'endSeqNum' | 'expiresAt'> {
  // Some expire, so that segments become half empty.
  return {
    firstSeqNum,
    endSeqNum: firstSeqNum + 1 + (firstSeqNum % 4),
    expiresAt: firstSeqNum % 3 === 0 ? 1 : null,
  }
}

export function recordsOf(logId: string, firstSeqNum: number, endSeqNum: number): SequencedRecord[] {
  return Array.from({ length: endSeqNum - firstSeqNum }, (_, i) => recordOf(logId, firstSeqNum + i))
}

export function blockAt(logId: string, firstSeqNum: number): StoredBlock {
  const place = placeAt(firstSeqNum)
  const records = recordsOf(logId, firstSeqNum, place.endSeqNum)
  return {
    ...place,
    firstTimestamp: records[0]!.timestamp,
    lastTimestamp: records.at(-1)!.timestamp,
    meteredBytes: records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0),
    data: encodeRecords(records),
  }
}

/** The head after the next append. Some appends fence, and some trim. */
export function headAfter(head: Head): Head {
  const { firstSeqNum, endSeqNum } = placeAt(head.tail.seqNum)
  const trims = firstSeqNum % 41 === 0 && firstSeqNum > 500
  const trimPoint = trims ? firstSeqNum - 500 : head.trimPoint
  return {
    ...head,
    tail: { seqNum: endSeqNum, timestamp: timestampOf(endSeqNum - 1) },
    trimPoint,
    fencingToken: firstSeqNum % 17 === 0 ? `token-${firstSeqNum}` : head.fencingToken,
    appendId: `append-${endSeqNum}`,
    trims: trims ? [...head.trims.slice(-2), { point: trimPoint, at: 0 }] : head.trims,
  }
}
