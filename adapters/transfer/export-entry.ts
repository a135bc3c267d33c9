import type { BasinConfig, Cipher, SequencedRecord, StreamConfig, StreamPosition } from '../../src/index.ts'

/** The version of the format that this version writes, and the one that it reads. */
export const EXPORT_VERSION = 1

/**
 * A line of an export holds at most so many bytes. A record has at most 1 MiB, and a byte of it takes at most six: a control character that
 * JSON escapes.
 */
export const LINE_BYTES_MAX = 8 * 1024 * 1024

/** A line of an export (docs/export-format.md). */
export type ExportEntry =
  | ExportHeader
  | { readonly kind: 'basin'; readonly name: string; readonly config: BasinConfig }
  | { readonly kind: 'stream'; readonly stream: ExportedStream }
  | { readonly kind: 'record'; readonly record: SequencedRecord }
  | { readonly kind: 'stream-end'; readonly name: string; readonly records: number }
  | { readonly kind: 'end'; readonly counts: ExportCounts }

export interface ExportHeader {
  readonly kind: 'header'
  /** RFC 3339. */
  readonly exportedAt: string
  /** `*`, `NAME` or `PREFIX*`. */
  readonly basins: string
  readonly streams: string
}

export interface ExportedStream {
  readonly basin: string
  readonly name: string
  readonly config: StreamConfig
  readonly cipher: Cipher | null
  /** RFC 3339: tells it from another stream of this name. Undefined: not known. */
  readonly createdAt: string | undefined
  /** The first sequence number that existed; that of the tail when there was none. */
  readonly start: number
  /** When the export of the stream began: its records end here. */
  readonly tail: StreamPosition
  /** `''`: it is not fenced. Undefined: not known. */
  readonly fencingToken: string | undefined
}

export interface ExportCounts {
  readonly basins: number
  readonly streams: number
  readonly records: number
}

/** How each kind of line begins. */
export const RECORD_PREFIX = '{"seq_num":'
export const STREAM_PREFIX = '{"stream":'
