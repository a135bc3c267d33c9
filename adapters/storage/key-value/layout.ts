import { concatBytes, lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import type { Collection, Head, StoredBlock } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'

/**
 * The keys and values of `orderedKeyValueStorage`. Persisted: a change needs another {@link FORMAT}; previews
 * had 1.
 *
 * | key | value |
 * |---|---|
 * | `f` | the format as a decimal number |
 * | `c` collection 00 key | a document: its version, and its value as JSON |
 * | `l` log | a log as JSON: its head and the members of {@link KeyValueLog}; `null` once it is deleted |
 * | `b` log end | a block: seven numbers (below), and its data if that is short |
 * | `d` log end 00 00 00 00 | the data of a longer block |
 * | `t` time log | empty: at this time a trim, or at 0 the deletion, left blocks to free |
 * | `x` time log | empty: at this time the first block of the log expires |
 *
 * A log is its id in UTF-8 after two bytes with its length, and `end` the sequence number after a block.
 * Numbers are float64, big-endian: that orders those that are not negative.
 */
export const FORMAT = '2'

export const FORMAT_KEY: Uint8Array = utf8('f')

/** The sequence number after the last record, and the times. */
const NUMBER_BYTES = 8
const HEADER_NUMBERS = 7
const HEADER_BYTES = HEADER_NUMBERS * NUMBER_BYTES

/** Longer data has a value of its own, so that looking for a block does not load it. */
export const INLINE_BYTES_MAX = 16_384

/** Whether data are stored beside the numbers of their block. */
export function isInline({ length }: Uint8Array): boolean {
  return length <= INLINE_BYTES_MAX
}

/** The part of a block that tells when it can be freed. A block that was merged may end later. */
export type FirstBlock = Pick<StoredBlock, 'firstSeqNum' | 'endSeqNum' | 'expiresAt'>

/** A log that exists. */
export interface KeyValueLog {
  readonly head: Head
  /** The metered bytes of the blocks that are not freed. */
  readonly meteredBytes: number
  /** The first block that is not freed, which is freed before the others; null without one. */
  readonly first: FirstBlock | null
  /** Blocks that end at or below this sequence number are not merged any more. */
  readonly mergedBelow: number
  /** The number of blocks behind those. */
  readonly unmerged: number
}

/** What a new log has besides its head. */
export const EMPTY_LOG = { meteredBytes: 0, first: null, mergedBelow: 0, unmerged: 0 } as const

export function firstBlockOf({ firstSeqNum, endSeqNum, expiresAt }: StoredBlock): FirstBlock {
  return { firstSeqNum, endSeqNum, expiresAt }
}

/** A block whose data may have a value of their own. */
export interface BlockEntry extends StoredBlock {
  /** Otherwise `data` is empty. */
  readonly hasData: boolean
}

/** The prefix of the documents of a collection. */
export function collectionKey(collection: Collection): Uint8Array {
  return utf8(`c${collection}\0`)
}

export function catalogKey(collection: Collection, key: string): Uint8Array {
  return concatBytes([collectionKey(collection), utf8(key)])
}

export function encodeDocumentValue(text: string, version: number): Uint8Array {
  return concatBytes([numbers(version), utf8(text)])
}

/** Throws `StorageFailure` of kind `corrupt` if the value is damaged. */
export function decodeDocumentValue(value: Uint8Array): { readonly text: string; readonly version: number } {
  if (value.length < NUMBER_BYTES) throw storeDamaged('a document is truncated')
  return { text: lossyTextOf(value.subarray(NUMBER_BYTES)), version: numberAt(value, 0) }
}

/** Parses the value of a document. Throws `StorageFailure` of kind `corrupt` if it is damaged. */
export function parseJson(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's message quotes the text, which may be secret.
    throw storeDamaged('a value is not JSON')
  }
}

export function logKey(logId: string): Uint8Array {
  return concatBytes([utf8('l'), logBytes(logId)])
}

export function encodeLog(log: KeyValueLog | undefined): Uint8Array {
  return utf8(JSON.stringify(log ?? null))
}

/** Undefined for a deleted log. Throws `StorageFailure` of kind `corrupt` if the value is damaged. */
export function decodeLog(value: Uint8Array): KeyValueLog | undefined {
  const log = parseJson(lossyTextOf(value)) as KeyValueLog | null
  if (log === null) return undefined
  const { head, meteredBytes, first, mergedBelow, unmerged } = log
  const numbers = [head?.tail?.seqNum, meteredBytes, first?.endSeqNum ?? 0, mergedBelow, unmerged]
  const isWhole = numbers.every(Number.isSafeInteger)
  if (!isWhole || !Array.isArray(head.trims)) throw storeDamaged('the entry of a log is invalid')
  return log
}

/** The key of the block of a log that ends at `endSeqNum`; infinity follows all blocks. */
export function blockKey(logId: string, endSeqNum: number): Uint8Array {
  return concatBytes([utf8('b'), logBytes(logId), numbers(endSeqNum)])
}

/** The last number says whether the data have a value of their own. */
export function encodeBlock(block: StoredBlock): Uint8Array {
  const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, data } = block
  const expiresAt = block.expiresAt ?? Number.POSITIVE_INFINITY
  const header = numbers(
    firstSeqNum,
    endSeqNum,
    firstTimestamp,
    lastTimestamp,
    meteredBytes,
    expiresAt,
    isInline(data) ? 0 : 1,
  )
  return isInline(data) ? concatBytes([header, data]) : header
}

/** Throws `StorageFailure` of kind `corrupt` if the value is damaged. */
export function decodeBlock(value: Uint8Array): BlockEntry {
  if (value.length < HEADER_BYTES) throw storeDamaged('a block is truncated')
  const [firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, others] = Array.from(
    { length: HEADER_NUMBERS },
    (_, index) => numberAt(value, index),
  ) as [...[number, number, number, number, number, number, number]]
  const counts = [firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes]
  const isValid = counts.every((count) => Number.isSafeInteger(count) && count >= 0)
  const data = value.subarray(HEADER_BYTES)
  if (
    !isValid ||
    firstSeqNum >= endSeqNum ||
    Number.isNaN(expiresAt) ||
    others !== (data.length > 0 ? 0 : 1)
  ) {
    throw storeDamaged('the numbers of a block are invalid')
  }
  return {
    firstSeqNum,
    endSeqNum,
    firstTimestamp,
    lastTimestamp,
    meteredBytes,
    expiresAt: expiresAt === Number.POSITIVE_INFINITY ? null : expiresAt,
    data,
    hasData: others === 0,
  }
}

/** The key of the data of a longer block. */
export function dataKey(logId: string, endSeqNum: number): Uint8Array {
  return concatBytes([utf8('d'), logBytes(logId), numbers(endSeqNum), new Uint8Array(4)])
}

/** The indexes of logs with blocks to free: after a trim or their deletion, and because they expire. */
export type DueIndex = 't' | 'x'

/** The key that states that a log has blocks to free from this time on. */
export function dueKey(index: DueIndex, time: number, logId: string): Uint8Array {
  return concatBytes([utf8(index), numbers(time), logBytes(logId)])
}

export function logIdOfDueKey(key: Uint8Array): string {
  return lossyTextOf(key.subarray(1 + NUMBER_BYTES + LENGTH_BYTES))
}

/** The range of an index up to a time, inclusive. */
export function dueRange(index: DueIndex, time: number) {
  // Every key at this time is longer, and a log id of 65,535 bytes would be too long.
  const to = concatBytes([utf8(index), numbers(Math.max(time, 0)), Uint8Array.of(0xff, 0xff)])
  return { from: utf8(index), to }
}

/** The range of the blocks of a log that end after a sequence number. */
export function blockRange(logId: string, after: number) {
  return { from: blockKey(logId, after + 1), to: blockKey(logId, Number.POSITIVE_INFINITY) }
}

export function storeDamaged(problem: string): StorageFailure {
  return new StorageFailure('corrupt', `the store is damaged: ${problem}`, { nothingWritten: true })
}

const LOG_ID_BYTES_MAX = 1_024
const LENGTH_BYTES = 2

function logBytes(logId: string): Uint8Array {
  const id = utf8(logId)
  if (id.length > LOG_ID_BYTES_MAX)
    throw new RangeError(`a log id has ${id.length} bytes; at most 1,024 are possible`)
  return concatBytes([Uint8Array.of(id.length >> 8, id.length & 0xff), id])
}

function numbers(...values: number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * NUMBER_BYTES)
  const view = new DataView(bytes.buffer)
  for (const [index, value] of values.entries()) view.setFloat64(index * NUMBER_BYTES, value)
  return bytes
}

function numberAt(bytes: Uint8Array, index: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getFloat64(index * NUMBER_BYTES)
}
