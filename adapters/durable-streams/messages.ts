import type { RecordInput, SequencedRecord } from '../../src/index.ts'
import { concatBytes, textOf, utf8 } from '../../src/model/bytes.ts'
import { LARGE_APPEND_BYTES_MAX, MIB, RECORD_METERED_BYTES_MAX } from '../../src/model/limits.ts'
import { RECORD_METERED_BYTES } from '../../src/model/record.ts'

/** The longest body of an append. */
export const APPEND_BYTES_MAX = 16 * MIB

/**
 * The header of a record that is a part of a message, because the message exceeds a record: the number of the
 * part and how many there are, such as `2/3`. All parts are appended together.
 */
const PART_HEADER = 'durable-streams-part'
/** The metered size of the header with the longest value. */
const PART_HEADER_BYTES = 2 + PART_HEADER.length + '99/99'.length
const MESSAGE_BYTES_MAX = RECORD_METERED_BYTES_MAX - RECORD_METERED_BYTES
const PART_BYTES = MESSAGE_BYTES_MAX - PART_HEADER_BYTES
/** Another protocol can append records with any number. */
const PARTS_MAX = LARGE_APPEND_BYTES_MAX / MIB

/** The records of a message: one, or several if it is larger than a record. */
export function recordsOfMessage(message: Uint8Array | string): readonly RecordInput[] {
  // The UTF-8 encoding has at most three bytes for each code unit.
  if (message.length <= MESSAGE_BYTES_MAX / 3) return [message]
  const bytes = typeof message === 'string' ? utf8(message) : message
  if (bytes.length <= MESSAGE_BYTES_MAX) return [bytes]
  const count = Math.ceil(bytes.length / PART_BYTES)
  return Array.from({ length: count }, (_, index) => ({
    body: bytes.subarray(index * PART_BYTES, (index + 1) * PART_BYTES),
    headers: [[PART_HEADER, `${index + 1}/${count}`]],
  }))
}

interface Part {
  readonly number: number
  readonly count: number
}

function partOf({ headers }: SequencedRecord): Part | undefined {
  const [header] = headers
  if (header === undefined || headers.length > 1 || textOf(header[0]) !== PART_HEADER) return undefined
  const match = /^([1-9]\d?)\/([1-9]\d?)$/.exec(textOf(header[1]) ?? '')
  if (match === null) return undefined
  const part = { number: Number(match[1]), count: Number(match[2]) }
  return part.number <= part.count && part.count <= PARTS_MAX ? part : undefined
}

/** How many records that are parts of the same message should follow the last one of a read. */
export function missingParts(last: SequencedRecord | undefined): number {
  const part = last && partOf(last)
  return part === undefined ? 0 : part.count - part.number
}

/** Whether a record is the next part of the message of the record before it. */
export function isContinuation(before: SequencedRecord, record: SequencedRecord): boolean {
  const part = partOf(record)
  const last = part && partOf(before)
  return last !== undefined && part!.number === last.number + 1 && part!.count === last.count
}

/** How many records follow `start` without a gap in their numbers as parts of the same message. */
function continuations(records: readonly SequencedRecord[], start: number): number {
  let index = start + 1
  while (index < records.length && isContinuation(records[index - 1]!, records[index]!)) index++
  return index - start - 1
}

/**
 * The records of each message. Another protocol can append records that claim to be parts: those that do not
 * form a whole message are messages of their own, so that they take no record after them along.
 */
export function messageRecords(records: readonly SequencedRecord[]): readonly (readonly SequencedRecord[])[] {
  const messages: (readonly SequencedRecord[])[] = []
  for (let start = 0; start < records.length; ) {
    const part = partOf(records[start]!)
    const isWhole = part?.number === 1 && continuations(records, start) === part.count - 1
    const end = start + (isWhole ? part.count : 1)
    messages.push(records.slice(start, end))
    start = end
  }
  return messages
}

/** The messages in records. */
export function messagesOf(records: readonly SequencedRecord[]): readonly Uint8Array[] {
  return messageRecords(records).map((parts) =>
    parts.length === 1 ? parts[0]!.body : concatBytes(parts.map(({ body }) => body)),
  )
}
