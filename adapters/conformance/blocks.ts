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

export function block(spec: BlockSpec): StoredBlock {
  const records: SequencedRecord[] = []
  for (let i = 0; i < (spec.count ?? 1); i++) {
    const seqNum = spec.firstSeqNum + i
    const timestamp = spec.timestamp ?? NOW + seqNum
    records.push({
      seqNum,
      timestamp,
      headers: Array.from({ length: spec.headers ?? 0 }, () => SMALL_HEADER),
      body: bodyOf(`${spec.tag ?? ''}#${seqNum}`, spec.bodyBytes),
    })
  }
  return {
    firstSeqNum: spec.firstSeqNum,
    endSeqNum: spec.firstSeqNum + records.length,
    firstTimestamp: records[0]!.timestamp,
    lastTimestamp: records.at(-1)!.timestamp,
    meteredBytes: metered(records),
    expiresAt: spec.expiresAt ?? null,
    data: encodeRecords(records),
  }
}

/**
 * Returns the records of the blocks. Throws unless every block is whole, matches its metadata, is within the
 * limits of merging, and begins at or after the end of the previous one.
 */
export function recordsOfBlocks(blocks: readonly StoredBlock[]): SequencedRecord[] {
  const all: SequencedRecord[] = []
  let end = 0
  for (const { data, expiresAt: _, ...numbers } of blocks) {
    const records = decodeRecords(data)
    ok(records.length > 0, 'a block has no records')
    equal(
      numbers,
      {
        firstSeqNum: records[0]!.seqNum,
        endSeqNum: records[0]!.seqNum + records.length,
        firstTimestamp: records[0]!.timestamp,
        lastTimestamp: records.at(-1)!.timestamp,
        meteredBytes: metered(records),
      },
      'metadata of a block',
    )
    records.forEach((record, i) => {
      equal(record.seqNum, numbers.firstSeqNum + i, 'sequence number of a record in a block')
    })
    ok(records.length <= BATCH_RECORDS_MAX, `a block has ${records.length} records`)
    ok(numbers.meteredBytes <= BATCH_METERED_BYTES_MAX, `a block has ${numbers.meteredBytes} metered bytes`)
    ok(data.length <= BATCH_ENCODED_BYTES_MAX, `a block has ${data.length} bytes of data`)
    ok(
      numbers.firstSeqNum >= end,
      `a block begins at ${numbers.firstSeqNum}, but the one before ends at ${end}`,
    )
    end = numbers.endSeqNum
    all.push(...records)
  }
  return all
}

export function seqNumsOf(blocks: readonly StoredBlock[]): number[] {
  return recordsOfBlocks(blocks).map((record) => record.seqNum)
}

/** The numbers from `first` to `end` (exclusive). */
export function range(first: number, end: number): number[] {
  return Array.from({ length: end - first }, (_, i) => first + i)
}

function metered(records: readonly SequencedRecord[]): number {
  return records.reduce((sum, record) => sum + meteredBytesOf(record.headers, record.body), 0)
}

function bodyOf(text: string, length: number | undefined): Uint8Array {
  const bytes = utf8(text)
  if (length === undefined) return bytes
  const body = new Uint8Array(length)
  for (let i = 0; i < length; i++) body[i] = bytes[i] ?? i & 0xff
  return body
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
  range: ReadRange,
  blocks: readonly StoredBlock[],
): void {
  const description = `read ${JSON.stringify({ ...range, memory: undefined })}`
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
