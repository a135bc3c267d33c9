import { basinConfig, mergeStreamConfig } from '../../src/core/config.ts'
import type { Header, SequencedRecord, StreamTail } from '../../src/index.ts'
import { appendRecord } from '../../src/model/append-input.ts'
import { decodeBase64, encodeBase64, textOf, utf8 } from '../../src/model/bytes.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfig,
  type StreamConfig,
} from '../../src/model/config.ts'
import { invalid } from '../../src/model/errors.ts'
import {
  assertStreamCreation,
  type StreamExpiry,
  type StreamInfo,
  type StreamMetadata,
} from '../../src/model/info.ts'
import { basinNameProblem, fencingTokenProblem, streamNameProblem } from '../../src/model/names.ts'
import { sequencedRecord } from '../../src/model/record.ts'
import {
  arrayOf,
  type JsonObject,
  nameOf,
  objectForm,
  objectOf,
  optional,
  type Reader,
  readJson,
  required,
  safeIntegerOf,
  stringOf,
  TIME,
  type TwoWay,
} from '../../src/wire/json.ts'
import { BASIN_CONFIG_INPUT, cipherOf, STREAM_CONFIG_INPUT } from '../../src/wire/json-config.ts'
import { positionOf } from '../../src/wire/json-records.ts'
import type { StreamPath } from './service.ts'

/** The version of the format that this program reads and writes. */
const EXPORT_VERSION = 1

/** A line of an export (docs/export-format.md "Lines"). */
export type ExportEntry =
  | (ExportHeader & { readonly kind: 'header' })
  | (ExportedBasin & { readonly kind: 'basin' })
  | { readonly kind: 'stream'; readonly stream: ExportedStream }
  | { readonly kind: 'record'; readonly record: SequencedRecord }
  | (StreamEnd & { readonly kind: 'stream-end' })
  | { readonly kind: 'end'; readonly counts: ExportCounts }

interface ExportHeader {
  readonly exportedAt: Date
}

interface ExportedBasin {
  readonly name: string
  readonly config: BasinConfig
}

export interface ExportedStream extends StreamPath, Pick<StreamInfo, 'cipher' | 'metadata' | 'expiry'> {
  readonly config: StreamConfig
  /** Distinguishes the stream from a later one with the same name. */
  readonly createdAt?: Date | undefined
  /** The sequence number of the first record that existed, of the tail if none did. */
  readonly start: number
  /** The tail when the export of the stream began. Later records are not part of it. */
  readonly tail: StreamTail
  /** The fencing token, unless a record sets another one. Empty without one. Undefined: unknown. */
  readonly fencingToken?: string | undefined
}

export interface StreamEnd {
  readonly name: string
  readonly records: number
}

export interface ExportCounts {
  readonly basins: number
  readonly streams: number
  readonly records: number
}

const COUNT = { form: safeIntegerOf, required: true }
const TEXT = { form: stringOf, required: true }

const HEADER = objectForm<ExportHeader & { readonly version: number }>({
  version: { form: versionOf, name: 'headwater_export', required: true },
  exportedAt: { form: TIME, required: true },
})

const BASIN_CONFIG: TwoWay<BasinConfig> = {
  read(value, name) {
    const config = BASIN_CONFIG_INPUT.read(value, name)
    assertBasinConfig(config)
    return basinConfig(config)
  },
  write: (config) => BASIN_CONFIG_INPUT.write(config, undefined),
}

const BASIN = objectForm<ExportedBasin>({
  name: { form: nameOf(basinNameProblem), name: 'basin', required: true },
  config: { form: BASIN_CONFIG, required: true },
})

const STREAM_CONFIG: TwoWay<StreamConfig> = {
  read(value, name) {
    const config = STREAM_CONFIG_INPUT.read(value, name)
    assertStreamConfig(config)
    return mergeStreamConfig(config, {})
  },
  write: (config) => STREAM_CONFIG_INPUT.write(config, undefined),
}

const metadataOf: Reader<StreamMetadata> = (value, name) => {
  const members = Object.entries(objectOf(value, name))
  return Object.fromEntries(members.map(([key, text]) => [key, stringOf(text, name)]))
}

/** Exactly one of the members, which `assertStreamCreation` checks. */
const EXPIRY = objectForm<{ at?: Date; idleSeconds?: number }>({ at: TIME, idleSeconds: safeIntegerOf })

const TAIL: TwoWay<StreamTail> = {
  read: positionOf,
  write: ({ seqNum, timestamp, closed }) => ({ seq_num: seqNum, timestamp, closed }),
}

const STREAM = objectForm<ExportedStream>({
  name: { form: nameOf(streamNameProblem), name: 'stream', required: true },
  basin: TEXT,
  config: { form: STREAM_CONFIG, required: true },
  cipher: { form: cipherOf, absent: null },
  createdAt: TIME,
  metadata: metadataOf,
  expiry: EXPIRY as TwoWay<StreamExpiry>,
  start: COUNT,
  tail: { form: TAIL, required: true },
  fencingToken: nameOf(fencingTokenProblem),
})

const STREAM_END = objectForm<StreamEnd>({
  name: { form: stringOf, name: 'stream_end', required: true },
  records: COUNT,
})

const END = objectForm<{ readonly counts: ExportCounts }>({
  counts: {
    form: objectForm<ExportCounts>({ basins: COUNT, streams: COUNT, records: COUNT }),
    name: 'export_end',
    required: true,
  },
})

/**
 * Encodes a line without its line break. The order of members is part of the format: the first one names the
 * kind.
 */
export function encodeEntry(entry: ExportEntry): string {
  switch (entry.kind) {
    case 'header':
      return HEADER.requestText({ version: EXPORT_VERSION, ...entry })
    case 'basin':
      return BASIN.requestText(entry)
    case 'stream':
      return STREAM.requestText(entry.stream)
    case 'record':
      return JSON.stringify(recordJson(entry.record))
    case 'stream-end':
      return STREAM_END.requestText(entry)
    case 'end':
      return END.requestText(entry)
  }
}

/**
 * Decodes a line of an export.
 *
 * @throws HeadwaterError `bad_json` for another form, `invalid` for values that every service would reject.
 */
export function decodeEntry(line: Uint8Array): ExportEntry {
  const object = objectOf(readJson(line), 'line')
  switch (Object.keys(object)[0]) {
    case 'headwater_export': {
      const { version: _, ...header } = HEADER.of(object)
      return { kind: 'header', ...header }
    }
    case 'basin':
      return { kind: 'basin', ...BASIN.of(object) }
    case 'stream': {
      const stream = STREAM.of(object)
      const { metadata, expiry, start, tail } = stream
      assertStreamCreation({ metadata, expiry })
      if (start > tail.seqNum) throw invalid('`start` must not exceed the tail', 'start')
      return { kind: 'stream', stream }
    }
    case 'seq_num':
      return { kind: 'record', record: recordOf(object) }
    case 'stream_end':
      return { kind: 'stream-end', ...STREAM_END.of(object) }
    case 'export_end':
      return { kind: 'end', ...END.of(object) }
    default:
      throw invalid('not a line of an export')
  }
}

function versionOf(value: unknown, name: string): number {
  const version = safeIntegerOf(value, name)
  if (version === EXPORT_VERSION) return version
  throw invalid(`the format has version ${version}; this program reads version ${EXPORT_VERSION}`)
}

function recordJson({ seqNum, timestamp, headers, body }: SequencedRecord): object {
  const text = textOf(body)
  return {
    seq_num: seqNum,
    timestamp,
    ...(headers.length > 0 && headersJson(headers)),
    ...(text === undefined ? { body_base64: encodeBase64(body) } : { body: text }),
  }
}

/** Headers are text if all of them are. */
function headersJson(headers: readonly Header[]): object {
  const texts = headers.map((header) => header.map(textOf))
  if (!texts.flat().includes(undefined)) return { headers: texts }
  return { headers_base64: headers.map((header) => header.map(encodeBase64)) }
}

function recordOf(object: JsonObject): SequencedRecord {
  const seqNum = required(object, 'seq_num', safeIntegerOf)
  const timestamp = required(object, 'timestamp', safeIntegerOf)
  const headers = optional(object, 'headers', headersOf(utf8))
  const binaryHeaders = optional(object, 'headers_base64', headersOf(binary))
  const body = optional(object, 'body', stringOf)
  const binaryBody = optional(object, 'body_base64', stringOf)
  if (headers && binaryHeaders) throw invalid('`headers` cannot be combined with `headers_base64`', 'headers')
  if (body !== undefined && binaryBody !== undefined) {
    throw invalid('`body` cannot be combined with `body_base64`', 'body')
  }
  const record = {
    headers: headers ?? binaryHeaders ?? [],
    body: binaryBody === undefined ? utf8(body ?? '') : binary(binaryBody),
  }
  // Rejects records that no service accepts: too large, empty header names, malformed commands.
  appendRecord(record)
  return sequencedRecord(seqNum, timestamp, record.headers, record.body)
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
