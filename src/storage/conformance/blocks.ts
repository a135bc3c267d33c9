import { utf8 } from '../../model/bytes.ts'
import { BATCH_ENCODED_BYTES_MAX, BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../model/limits.ts'
import { meteredBytesOf, type SequencedRecord } from '../../model/record.ts'
import { decodeRecords, encodeRecords } from '../block-codec.ts'
import type { StoredBlock } from '../contract.ts'
import { equal, ok } from './assert.ts'

/** The time at which the tests play. */
export const NOW = 1_700_000_000_000
/** An expiry far beyond every `now` of the tests. */
export const FAR = NOW + 1_000_000_000

export interface BlockSpec {
  readonly firstSeqNum: number
  /** How many records; 1 when absent. */
  readonly count?: number | undefined
  /** Of all records; `NOW` plus the sequence number when absent. */
  readonly timestamp?: number | undefined
  /** Null when absent: such neighbours may be merged. */
  readonly expiresAt?: number | null | undefined
  /** Length of each body; as short as it can be when absent. */
  readonly bodyBytes?: number | undefined
  /** How many headers each record has, of a name and a value of one byte, which take twice their metered bytes when they are encoded; none when absent. */
  readonly headers?: number | undefined
  /** Part of the bodies, to tell two writers apart. */
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
 * The records of what a read returned. Fails unless every block is whole, says the truth about its records, keeps
 * within the limits of merging, and begins at or after the end of the one before.
 */
export function recordsOf(blocks: readonly StoredBlock[]): SequencedRecord[] {
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
      'what a block says of its records',
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
  return recordsOf(blocks).map((record) => record.seqNum)
}

/** From `first` up to, but without, `end`. */
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
