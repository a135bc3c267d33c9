import { lossyTextOf } from './bytes.ts'
import type { Command } from './command.ts'
import { HEADER_METERED_BYTES, RECORD_METERED_BYTES } from './metering.ts'

/** Name and value of a header, as stored: bytes. Names may repeat; their order is kept. */
export type Header = readonly [name: Uint8Array, value: Uint8Array]

/** A record as readers get it (service-interface.md "Record"). Its byte arrays are shared: read, do not write. */
export interface SequencedRecord {
  readonly seqNum: number
  /** Milliseconds since the Unix epoch where the service assigned it; never smaller than the record's before it. */
  readonly timestamp: number
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/** The same with strings: UTF-8, each ill-formed part replaced by U+FFFD. */
export interface TextRecord {
  readonly seqNum: number
  readonly timestamp: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

/** A validated record that waits for its sequence number. */
export interface AppendRecord {
  /** Undefined when the writer gave none. */
  readonly timestamp: number | undefined
  readonly headers: readonly Header[]
  readonly body: Uint8Array
  readonly meteredBytes: number
  /** See `encodedBytesMaxOf`. */
  readonly encodedBytesMax: number
  /** Set when the record is a command. */
  readonly command: Command | undefined
}

/** Metered size in bytes: `8 + 2 × headers + their lengths + body` (wire-behaviour.md 3.2). */
export function meteredBytesOf(headers: readonly Header[], body: Uint8Array): number {
  let bytes = RECORD_METERED_BYTES + HEADER_METERED_BYTES * headers.length + body.length
  for (const [name, value] of headers) bytes += name.length + value.length
  return bytes
}

/** Largest size of a sequence number or a timestamp with its tag. */
const NUMBER_BYTES_MAX = 9

/** The most that the record can take in its protobuf encoding (wire-behaviour.md 6.6), wherever in a stream it comes to lie. */
export function encodedBytesMaxOf(headers: readonly Header[], body: Uint8Array): number {
  let bytes = 2 * NUMBER_BYTES_MAX + fieldBytes(body.length)
  for (const [name, value] of headers) bytes += fieldBytes(fieldBytes(name.length) + fieldBytes(value.length))
  return fieldBytes(bytes)
}

/** Tag, length and content of a field; none is written for one without content. */
function fieldBytes(length: number): number {
  if (length === 0) return 0
  return length + (length < 0x80 ? 2 : length < 0x4000 ? 3 : length < 0x20_0000 ? 4 : 5)
}

/** The same record with strings: UTF-8, each ill-formed part replaced by U+FFFD (wire-behaviour.md 7.3). */
export function textRecord(record: SequencedRecord): TextRecord {
  const { seqNum, timestamp } = record
  const headers = record.headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)] as const)
  return { seqNum, timestamp, headers, body: lossyTextOf(record.body) }
}
