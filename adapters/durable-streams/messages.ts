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

/** How many records follow the last one of a read that are parts of the same message. */
export function missingParts(last: SequencedRecord | undefined): number {
  const part = last && partOf(last)
  return part === undefined ? 0 : part.count - part.number
}

/** Whether the message of a record continues in the next record. */
export function isContinued(record: SequencedRecord): boolean {
  return missingParts(record) > 0
}

/**
 * The messages in records. A message whose first parts were trimmed is left out, because a piece of it could
 * pass for another message.
 */
export function messagesOf(records: readonly SequencedRecord[]): readonly Uint8Array[] {
  const messages: Uint8Array[] = []
  let parts: Uint8Array[] = []
  for (const record of records) {
    const part = partOf(record)
    if (part === undefined) {
      parts = []
      messages.push(record.body)
    } else if (part.number === parts.length + 1) {
      parts.push(record.body)
      if (part.number < part.count) continue
      messages.push(concatBytes(parts))
      parts = []
    } else parts = []
  }
  return messages
}
