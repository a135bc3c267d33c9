import { utf8 } from '../../src/model/bytes.ts'
import {
  BATCH_ENCODED_BYTES_MAX,
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
} from '../../src/model/limits.ts'
import { meteredBytesOf, type SequencedRecord } from '../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../src/storage/block-codec.ts'
import type { ReadRange, StoredBlock } from '../../src/storage/contract.ts'
import { equal, ok } from './assertions.ts'

/** The time of the tests, in milliseconds. */
export const NOW = 1_700_000_000_000
/** An expiry later than any `now` of the tests. */
export const FAR = NOW + 1_000_000_000

/** The whole log. */
export const WHOLE_LOG = {
  from: { seqNum: 0 },
  endSeqNum: Number.MAX_SAFE_INTEGER,
  bytesMax: Number.MAX_SAFE_INTEGER,
}

export interface BlockSpec {
  readonly firstSeqNum: number
  /** Number of records. 1 by default. */
  readonly count?: number | undefined
  /** Timestamp of all records. `NOW` plus the sequence number by default. */
  readonly timestamp?: number | undefined
  /** Null by default, which lets adjacent blocks be merged. */
  readonly expiresAt?: number | null | undefined
  /** Length of each body. As short as possible by default. */
  readonly bodyBytes?: number | undefined
  /**
   * Number of headers per record, each with a name and a value of one byte: their encoding takes twice their
   * metered size. 0 by default.
   */
  readonly headers?: number | undefined
  /** Included in the bodies, to distinguish two writers. None by default. */
  readonly tag?: string | undefined
}

const SMALL_HEADER = [utf8('n'), utf8('v')] as const

export function block({ firstSeqNum, count = 1, headers = 0, tag = '', ...spec }: BlockSpec): StoredBlock {
  const records = range(firstSeqNum, firstSeqNum + count).map((seqNum) => ({
    seqNum,
    timestamp: spec.timestamp ?? NOW + seqNum,
    headers: Array.from({ length: headers }, () => SMALL_HEADER),
    body: bodyOf(`${tag}#${seqNum}`, spec.bodyBytes),
  }))
  return { ...numbersOf(records), expiresAt: spec.expiresAt ?? null, data: encodeRecords(records) }
}

function bodyOf(text: string, length: number | undefined): Uint8Array {
  const bytes = utf8(text)
  if (length === undefined) return bytes
  return Uint8Array.from({ length }, (_, i) => bytes[i] ?? i & 0xff)
}

/** The metadata of a block with these records. */
function numbersOf(records: readonly SequencedRecord[]): Omit<StoredBlock, 'data' | 'expiresAt'> {
  const [first, last] = [records[0]!, records.at(-1)!]
  return {
    firstSeqNum: first.seqNum,
    endSeqNum: first.seqNum + records.length,
    firstTimestamp: first.timestamp,
    lastTimestamp: last.timestamp,
    meteredBytes: records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0),
  }
}

/**
 * Returns the records of the blocks. Throws unless every block is whole, matches its metadata, is within the
 * limits of merging, and begins at or after the end of the previous one.
 */
export function recordsOfBlocks(blocks: readonly StoredBlock[]): SequencedRecord[] {
  let end = 0
  return blocks.flatMap(({ data, expiresAt: _, ...numbers }) => {
    const records = decodeRecords(data)
    const { firstSeqNum, endSeqNum, meteredBytes } = numbers
    ok(records.length > 0, 'a block has no records')
    equal(numbers, numbersOf(records), 'metadata of a block')
    const seqNums = records.map(({ seqNum }) => seqNum)
    equal(seqNums, range(firstSeqNum, endSeqNum), 'sequence numbers of a block')
    ok(records.length <= BATCH_RECORDS_MAX, `a block has ${records.length} records`)
    ok(meteredBytes <= BATCH_METERED_BYTES_MAX, `a block has ${meteredBytes} metered bytes`)
    ok(data.length <= BATCH_ENCODED_BYTES_MAX, `a block has ${data.length} bytes of data`)
    ok(firstSeqNum >= end, `a block begins at ${firstSeqNum}, but the one before ends at ${end}`)
    end = endSeqNum
    return records
  })
}

export function seqNumsOf(blocks: readonly StoredBlock[]): number[] {
  return recordsOfBlocks(blocks).map(({ seqNum }) => seqNum)
}

/** The numbers from `first` to `end` (exclusive). */
export function range(first: number, end: number): number[] {
  return Array.from({ length: end - first }, (_, i) => first + i)
}

/** A block as it was appended. */
export interface ExpectedBlock {
  readonly block: StoredBlock
  /** Whether the storage may have freed it. */
  mayBeFreed: boolean
  /** Whether its expiry may have been replaced by a later one, because its log was extended. */
  isExtended?: boolean | undefined
}

/**
 * Throws unless `blocks` is a valid result of reading `range` from a log to which `appended` was written.
 * Compares records instead of blocks, because adjacent blocks may have been merged.
 */
export function checkRead(
  appended: readonly ExpectedBlock[],
  { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY }: ReadRange,
  blocks: readonly StoredBlock[],
): void {
  const description = `read ${JSON.stringify({ from, endSeqNum, bytesMax, recordsMax })}`
  const isReached = ({ seqNum, timestamp }: SequencedRecord) =>
    'seqNum' in from ? seqNum >= from.seqNum : timestamp >= from.timestamp
  const known = new Map<number, { record: SequencedRecord; expected: ExpectedBlock }>()
  for (const expected of appended) {
    for (const record of decodeRecords(expected.block.data)) known.set(record.seqNum, { record, expected })
  }
  recordsOfBlocks(blocks)
  const isEmpty = 'seqNum' in from && from.seqNum >= endSeqNum
  ok(!isEmpty || blocks.length === 0, `${description}: returned a block for an empty range`)
  const returned = new Set<number>()
  let end = endSeqNum
  let bytes = 0
  for (const block of blocks) {
    const { firstSeqNum, expiresAt } = block
    const records = decodeRecords(block.data)
    ok(firstSeqNum < end, `${description}: returned block ${firstSeqNum}, which is behind the end`)
    ok(records.some(isReached), `${description}: returned block ${firstSeqNum}, which is before the start`)
    for (const record of records) {
      const match = known.get(record.seqNum)
      ok(match !== undefined, `${description}: returned record ${record.seqNum}, which is not in the log`)
      equal(record, match.record, `${description}: record ${record.seqNum}`)
      const stored = match.expected.block.expiresAt
      const isLater = expiresAt === null || expiresAt > (stored ?? Number.POSITIVE_INFINITY)
      if (!match.expected.isExtended || !isLater) {
        equal(expiresAt, stored, `${description}: expiry of record ${record.seqNum}`)
      }
      returned.add(record.seqNum)
    }
    bytes += block.meteredBytes
    // No further block may follow, and no record behind this one is missing.
    if (bytes >= bytesMax || returned.size >= recordsMax) end = Math.min(end, block.endSeqNum)
  }
  for (const { record, expected } of known.values()) {
    if (expected.mayBeFreed || record.seqNum >= end || !isReached(record)) continue
    ok(returned.has(record.seqNum), `${description}: left out record ${record.seqNum}`)
  }
}
