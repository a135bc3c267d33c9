import { equalBytes, lossyTextOf, textOf, utf8 } from './bytes.ts'
import { assertValid, type HeadwaterError, invalid } from './errors.ts'
import { INTEGER_MAX } from './limits.ts'
import { fencingTokenProblem } from './names.ts'

/** The name and value of a header as bytes. Names may repeat; their order is kept. */
export type Header = readonly [name: Uint8Array, value: Uint8Array]

/** Shared by the many records without headers. */
export const NO_HEADERS: readonly Header[] = Object.freeze([])

interface StoredRecord<Content> {
  /** The position in the stream, from 0. */
  readonly seqNum: number
  /** Milliseconds since the Unix epoch unless the writer uses another unit. Never decreases. */
  readonly timestamp: number
  /** The headers in the order in which they were appended. */
  readonly headers: readonly (readonly [name: Content, value: Content])[]
  readonly body: Content
  /** The effect of the record, if it is a command record (docs/protocol.md "Command records"). */
  readonly command?: Command | undefined
}

/** A stored record (docs/protocol.md "Records"). Its byte arrays are shared and must not be written to. */
export type SequencedRecord = StoredRecord<Uint8Array>

/** A stored record with strings: UTF-8, with U+FFFD for each ill-formed part. */
export type TextRecord = StoredRecord<string>

/** How a read returns bodies and headers. */
export type RecordFormat = 'string' | 'bytes'

/** A record with bodies and headers in a format. */
export type RecordAs<Format extends RecordFormat> = Format extends 'bytes' ? SequencedRecord : TextRecord

/** The meaning of a command record (docs/protocol.md "Command records"). */
export type Command =
  /** Sets the fencing token; an empty one clears it. */
  | { readonly kind: 'fence'; readonly token: string }
  /** Removes all records below `seqNum`. Values beyond 2^53 - 1 saturate: they remove everything. */
  | { readonly kind: 'trim'; readonly seqNum: number }
  /** Closes the stream: it is the last record. */
  | { readonly kind: 'close' }

export interface AppendRecord {
  /** Milliseconds; undefined if the writer gave none. */
  readonly timestamp: number | undefined
  readonly headers: readonly Header[]
  readonly body: Uint8Array
  readonly meteredBytes: number
  readonly encodedBytesMax: number
  readonly command: Command | undefined
}

/** The metered size of a record without headers and body, in bytes. */
export const RECORD_METERED_BYTES = 8
/** The metered size of a header without name and value, in bytes. */
export const HEADER_METERED_BYTES = 2

/** Metered size in bytes: `8 + 2 × headers + their lengths + body` (docs/protocol.md "Metered size"). */
export function meteredBytesOf(headers: readonly Header[], body: Uint8Array): number {
  let bytes = RECORD_METERED_BYTES + HEADER_METERED_BYTES * headers.length + body.length
  if (headers.length === 0) return bytes
  for (const [name, value] of headers) bytes += name.length + value.length
  return bytes
}

/** Largest size of a sequence number or a timestamp with its tag. */
const NUMBER_BYTES_MAX = 9

/** The largest size of the record in protobuf (docs/protocol.md "Protobuf messages") at any position. */
export function encodedBytesMaxOf(headers: readonly Header[], body: Uint8Array): number {
  let bytes = 2 * NUMBER_BYTES_MAX + fieldBytes(body.length)
  if (headers.length === 0) return fieldBytes(bytes)
  for (const [name, value] of headers) bytes += fieldBytes(fieldBytes(name.length) + fieldBytes(value.length))
  return fieldBytes(bytes)
}

/** The size of a field with tag, length and content; empty fields are not written. */
function fieldBytes(length: number): number {
  if (length === 0) return 0
  return length + (length < 0x80 ? 2 : length < 0x4000 ? 3 : length < 0x20_0000 ? 4 : 5)
}

/** Decodes bytes as UTF-8, with U+FFFD for each ill-formed part (docs/protocol.md "Data format"). */
export function textRecord(record: SequencedRecord): TextRecord {
  const { seqNum, timestamp, command } = record
  const headers = record.headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)] as const)
  const text = { seqNum, timestamp, headers, body: lossyTextOf(record.body) }
  return command === undefined ? text : { ...text, command }
}

export function equalHeaders(a: readonly Header[], b: readonly Header[]): boolean {
  return (
    a.length === b.length &&
    a.every(([name, value], index) => equalBytes(name, b[index]![0]) && equalBytes(value, b[index]![1]))
  )
}

const CLOSE: Command = { kind: 'close' }

/** Whether a record has the form of a command: exactly one header, with an empty name. */
export function isCommandShaped(headers: readonly Header[]): boolean {
  return headers.length === 1 && headers[0]![0].length === 0
}

/** Makes a stored record, with the command that it is, if any. */
export function sequencedRecord(
  seqNum: number,
  timestamp: number,
  headers: readonly Header[],
  body: Uint8Array,
): SequencedRecord {
  const command = headers.length === 1 ? commandOf(headers, body) : undefined
  return command === undefined
    ? { seqNum, timestamp, headers, body }
    : { seqNum, timestamp, headers, body, command }
}

/** The meaning of a stored record; undefined if it is no command. */
export function commandOf(headers: readonly Header[], body: Uint8Array): Command | undefined {
  if (!isCommandShaped(headers)) return undefined
  try {
    return parseCommand(headers[0]![1], body)
  } catch {
    // Another server may store commands that this version does not know.
    return undefined
  }
}

/** Parses a record that has the form of a command. Throws `invalid` if it is not one. */
export function parseCommand(operation: Uint8Array, payload: Uint8Array): Command {
  switch (textOf(operation)) {
    case 'fence': {
      const token = textOf(payload)
      if (token === undefined) throw badCommand('fence', 'fencing token is not valid UTF-8')
      const problem = fencingTokenProblem(token)
      if (problem !== undefined) throw badCommand('fence', problem)
      return { kind: 'fence', token }
    }
    case 'trim': {
      const { length } = payload
      if (length !== 8) {
        throw badCommand('trim', `earliest sequence number to trim to was ${length} bytes, must be 8`)
      }
      const seqNum = new DataView(payload.buffer, payload.byteOffset, 8).getBigUint64(0)
      return { kind: 'trim', seqNum: seqNum > BigInt(INTEGER_MAX) ? INTEGER_MAX : Number(seqNum) }
    }
    case 'close':
      if (payload.length !== 0) throw badCommand('close', 'the body must be empty')
      return CLOSE
    default:
      throw invalid('unknown command', 'headers')
  }
}

function badCommand(kind: Command['kind'], problem: string): HeadwaterError {
  return invalid(`invalid \`${kind}\` command: ${problem}`, 'body')
}

/**
 * A record that sets the fencing token, or clears it if `token` is empty. Throws `invalid` for a token of
 * more than 36 bytes.
 *
 * ```ts
 * // In one batch: takes over, and trims what the last writer has finished.
 * await stream.append([fenceRecord('writer-2'), trimRecord(100)])
 * ```
 */
export function fenceRecord(token: string): { headers: Header[]; body: Uint8Array } {
  assertValid(fencingTokenProblem(token), 'fencingToken')
  return { headers: [[utf8(''), utf8('fence')]], body: utf8(token) }
}

/**
 * A record that removes all records below `seqNum`. Integers beyond 2^53 - 1 saturate: they remove
 * everything. Throws `invalid` for a negative number or a fraction.
 */
export function trimRecord(seqNum: number): { headers: Header[]; body: Uint8Array } {
  // The payload is unsigned: -1 would wrap around to everything.
  if (!Number.isInteger(seqNum) || seqNum < 0) {
    throw invalid('`seqNum` of a trim must be an integer, 0 or more', 'seqNum')
  }
  const body = new Uint8Array(8)
  new DataView(body.buffer).setBigUint64(0, BigInt(Math.min(seqNum, INTEGER_MAX)))
  return { headers: [[utf8(''), utf8('trim')]], body }
}

/** A record that closes the stream. No record may follow it, in its batch or later. */
export function closeRecord(): { headers: Header[] } {
  return { headers: [[utf8(''), utf8('close')]] }
}
