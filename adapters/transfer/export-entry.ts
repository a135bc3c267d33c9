import { basinConfig, mergeStreamConfig } from '../../src/core/config.ts'
import type { Header, SequencedRecord, StreamTail } from '../../src/index.ts'
import { appendRecord } from '../../src/model/append-input.ts'
import { decodeBase64, encodeBase64, textOf, utf8 } from '../../src/model/bytes.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfig,
  type Cipher,
  type StreamConfig,
} from '../../src/model/config.ts'
import { assertStreamCreation, type StreamExpiry, type StreamMetadata } from '../../src/model/creation.ts'
import { assertValid, invalid } from '../../src/model/errors.ts'
import { basinNameProblem, fencingTokenProblem, streamNameProblem } from '../../src/model/names.ts'
import { assertInteger } from '../../src/model/validation.ts'
import {
  arrayOf,
  booleanOf,
  integerOf,
  type JsonObject,
  nullable,
  objectOf,
  optional,
  type Reader,
  readJson,
  required,
  stringOf,
  timeOf,
  timeText,
} from '../../src/wire/json.ts'
import {
  BASIN_CONFIG_INPUT,
  basinConfigJson,
  cipherOf,
  STREAM_CONFIG_INPUT,
  streamConfigJson,
} from '../../src/wire/json-config.ts'
import { positionJson } from '../../src/wire/json-records.ts'

/** The version of the format that this program reads and writes. */
const EXPORT_VERSION = 1

/** A record has at most 1 MiB, and JSON escapes a control character with six bytes. */
export const LINE_BYTES_MAX = 8 * 1024 * 1024

/** A line of an export (docs/export-format.md "Lines"). */
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
  /** RFC 3339. Distinguishes the stream from a later one with the same name. Undefined: unknown. */
  readonly createdAt: string | undefined
  /** Undefined: none, or unknown. */
  readonly metadata?: StreamMetadata | undefined
  readonly expiry?: StreamExpiry | undefined
  /** The sequence number of the first record that existed, of the tail if none did. */
  readonly start: number
  /** The tail when the export of the stream began. Later records are not part of it. */
  readonly tail: StreamTail
  /** Empty without a fence. Undefined: unknown. */
  readonly fencingToken: string | undefined
}

export interface ExportCounts {
  readonly basins: number
  readonly streams: number
  readonly records: number
}

/** How lines of records and streams begin. */
export const RECORD_PREFIX = '{"seq_num":'
export const STREAM_PREFIX = '{"stream":'

/**
 * Encodes a line without its line break. The order of members is part of the format: the first one names the
 * kind.
 */
export function encodeEntry(entry: ExportEntry): string {
  switch (entry.kind) {
    case 'header': {
      const { exportedAt, basins, streams } = entry
      return JSON.stringify({ headwater_export: EXPORT_VERSION, exported_at: exportedAt, basins, streams })
    }
    case 'basin':
      return `{"basin":${JSON.stringify(entry.name)},"config":${basinConfigJson(entry.config)}}`
    case 'stream': {
      const { name, basin, config, cipher, createdAt, metadata, expiry, start, tail, fencingToken } =
        entry.stream
      const names = `{"stream":${JSON.stringify(name)},"basin":${JSON.stringify(basin)}`
      const state = `"start":${start},"tail":${positionJson(tail)},"fencing_token":${JSON.stringify(fencingToken ?? null)}}`
      const kind = `"cipher":${JSON.stringify(cipher)},"created_at":${JSON.stringify(createdAt ?? null)}`
      const lasting = JSON.stringify({ metadata, expiry: expiry && expiryJson(expiry) }).slice(1, -1)
      return `${names},"config":${streamConfigJson(config)},${kind},${lasting && `${lasting},`}${state}`
    }
    case 'record':
      return encodeRecord(entry.record)
    case 'stream-end':
      return JSON.stringify({ stream_end: entry.name, records: entry.records })
    case 'end': {
      const { basins, streams, records } = entry.counts
      return JSON.stringify({ export_end: { basins, streams, records } })
    }
  }
}

function expiryJson(expiry: StreamExpiry): object {
  return 'at' in expiry ? { at: timeText(expiry.at) } : { idle_seconds: expiry.idleSeconds }
}

function encodeRecord({ seqNum, timestamp, headers, body }: SequencedRecord): string {
  const position = `{"seq_num":${seqNum},"timestamp":${timestamp}`
  const text = textOf(body)
  const bodyMember =
    text === undefined ? `"body_base64":"${encodeBase64(body)}"` : `"body":${JSON.stringify(text)}`
  return `${position}${headers.length === 0 ? '' : `,${headersMember(headers)}`},${bodyMember}}`
}

/** Encodes headers as text if all of them are text. */
function headersMember(headers: readonly Header[]): string {
  const texts: string[] = []
  for (const header of headers) {
    for (const bytes of header) {
      const text = textOf(bytes)
      if (text === undefined) return `"headers_base64":${pairs(headers.flat().map(encodeBase64))}`
      texts.push(text)
    }
  }
  return `"headers":${pairs(texts)}`
}

function pairs(flat: readonly string[]): string {
  const items: string[] = []
  for (let i = 0; i < flat.length; i += 2)
    items.push(`[${JSON.stringify(flat[i])},${JSON.stringify(flat[i + 1])}]`)
  return `[${items.join(',')}]`
}

/**
 * Decodes a line of an export.
 *
 * @throws HeadwaterError `bad_json` for another form, `invalid` for values that every service would reject.
 */
export function decodeEntry(line: Uint8Array): ExportEntry {
  const object = objectOf(readJson(line), 'line')
  switch (Object.keys(object)[0]) {
    case 'seq_num':
      return { kind: 'record', record: recordOf(object) }
    case 'stream':
      return { kind: 'stream', stream: streamOf(object) }
    case 'stream_end':
      return {
        kind: 'stream-end',
        name: required(object, 'stream_end', stringOf),
        records: required(object, 'records', count),
      }
    case 'basin': {
      const name = required(object, 'basin', stringOf)
      assertValid(basinNameProblem(name), 'basin')
      const config = BASIN_CONFIG_INPUT.read(required(object, 'config', objectOf), 'config')
      assertBasinConfig(config)
      return { kind: 'basin', name, config: basinConfig(config) }
    }
    case 'export_end':
      return { kind: 'end', counts: required(object, 'export_end', countsOf) }
    case 'headwater_export': {
      const version = required(object, 'headwater_export', integerOf)
      if (version !== EXPORT_VERSION) {
        throw invalid(`the format has version ${version}; this program reads version ${EXPORT_VERSION}`)
      }
      return {
        kind: 'header',
        exportedAt: required(object, 'exported_at', stringOf),
        basins: optional(object, 'basins', stringOf) ?? '*',
        streams: optional(object, 'streams', stringOf) ?? '*',
      }
    }
    default:
      throw invalid('not a line of an export')
  }
}

function recordOf(object: JsonObject): SequencedRecord {
  const seqNum = required(object, 'seq_num', count)
  const timestamp = required(object, 'timestamp', count)
  const headers = optional(object, 'headers', headersOf(utf8))
  const binaryHeaders = optional(object, 'headers_base64', headersOf(binary))
  const body = optional(object, 'body', stringOf)
  const binaryBody = optional(object, 'body_base64', stringOf)
  if (headers && binaryHeaders) throw invalid('`headers` cannot be combined with `headers_base64`', 'headers')
  if (body !== undefined && binaryBody !== undefined)
    throw invalid('`body` cannot be combined with `body_base64`', 'body')
  const record = {
    headers: headers ?? binaryHeaders ?? [],
    body: binaryBody === undefined ? utf8(body ?? '') : binary(binaryBody),
  }
  // Rejects records that no service accepts: too large, empty header names, malformed commands.
  appendRecord(record)
  return { seqNum, timestamp, ...record }
}

function headersOf(bytesOf: (text: string) => Uint8Array): Reader<Header[]> {
  return (value, name) =>
    arrayOf(value, name).map((item) => {
      const pair = arrayOf(item, name)
      if (pair.length !== 2) throw invalid('a header must be an array of exactly 2 strings', name)
      return [bytesOf(stringOf(pair[0]!, name)), bytesOf(stringOf(pair[1]!, name))]
    })
}

function binary(text: string): Uint8Array {
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw invalid('invalid Base64 encoding')
  return bytes
}

function streamOf(object: JsonObject): ExportedStream {
  const name = required(object, 'stream', stringOf)
  assertValid(streamNameProblem(name), 'stream')
  const config = STREAM_CONFIG_INPUT.read(required(object, 'config', objectOf), 'config')
  assertStreamConfig(config)
  const fencingToken = nullable(object, 'fencing_token', stringOf)
  if (fencingToken !== undefined) assertValid(fencingTokenProblem(fencingToken), 'fencing_token')
  const start = required(object, 'start', count)
  const tail = positionOf(required(object, 'tail', objectOf))
  if (start > tail.seqNum) throw invalid('`start` must not exceed the tail', 'start')
  const metadata = optional(object, 'metadata', metadataOf)
  const expiry = optional(object, 'expiry', expiryOf)
  assertStreamCreation({ metadata, expiry })
  return {
    basin: required(object, 'basin', stringOf),
    name,
    config: mergeStreamConfig(config, {}),
    cipher: nullable(object, 'cipher', cipherOf) ?? null,
    // Normalized, so that equal times are equal strings.
    createdAt: nullable(object, 'created_at', (value, at) => timeText(timeOf(value, at))),
    ...(metadata && { metadata }),
    ...(expiry && { expiry }),
    start,
    tail,
    fencingToken,
  }
}

function positionOf(object: JsonObject): StreamTail {
  const position = {
    seqNum: required(object, 'seq_num', count),
    timestamp: required(object, 'timestamp', count),
  }
  return optional(object, 'closed', booleanOf) ? { ...position, closed: true } : position
}

function metadataOf(value: unknown, name: string): StreamMetadata {
  const members = Object.entries(objectOf(value, name))
  return Object.fromEntries(members.map(([key, text]) => [key, stringOf(text, name)]))
}

function expiryOf(value: unknown, name: string): StreamExpiry {
  const object = objectOf(value, name)
  const idleSeconds = optional(object, 'idle_seconds', count)
  return idleSeconds === undefined ? { at: required(object, 'at', timeOf) } : { idleSeconds }
}

function countsOf(value: unknown, name: string): ExportCounts {
  const object = objectOf(value, name)
  return {
    basins: required(object, 'basins', count),
    streams: required(object, 'streams', count),
    records: required(object, 'records', count),
  }
}

function count(value: unknown, name: string): number {
  const number = integerOf(value, name)
  assertInteger(number, name)
  return number
}
