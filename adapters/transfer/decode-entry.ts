import { basinConfig } from '../../src/core/basin-config.ts'
import { mergeStreamConfig } from '../../src/core/stream-config.ts'
import type { Header, SequencedRecord } from '../../src/index.ts'
import { appendRecord } from '../../src/model/append-input.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { checkBasinConfig, checkStreamConfig } from '../../src/model/config-validation.ts'
import { invalid, refuse } from '../../src/model/errors.ts'
import { fencingTokenProblem } from '../../src/model/fencing-token.ts'
import { checkInteger } from '../../src/model/integers.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import { decodeBase64 } from '../../src/wire/base64.ts'
import { basinConfigOf, cipherOf, streamConfigOf } from '../../src/wire/json-config-input.ts'
import {
  arrayOf,
  type Decoder,
  integerOf,
  keptStringOf,
  nullable,
  objectOf,
  optional,
  required,
  stringOf,
} from '../../src/wire/json-members.ts'
import { readJson } from '../../src/wire/json-reader.ts'
import type { JsonObject, ParsedJson } from '../../src/wire/json-values.ts'
import { EXPORT_VERSION, type ExportCounts, type ExportEntry, type ExportedStream } from './export-entry.ts'
import { positionOf, timeTextOf } from './read-answer.ts'

/**
 * Reads a line of an export. Throws `HeadwaterError` `bad_json` for what is no such line, `invalid` for values that no service takes: what comes out
 * of here can be imported.
 */
export function decodeEntry(line: Uint8Array): ExportEntry {
  const object = objectOf(readJson(line), 'line')
  const [first] = object.members()
  switch (first?.[0]) {
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
      const name = required(object, 'basin', keptStringOf)
      refuse(basinNameProblem(name), 'basin')
      const config = required(object, 'config', basinConfigOf)
      checkBasinConfig(config)
      return { kind: 'basin', name, config: basinConfig(config) }
    }
    case 'export_end':
      return { kind: 'end', counts: required(object, 'export_end', countsOf) }
    case 'headwater_export': {
      const version = required(object, 'headwater_export', integerOf)
      if (version !== EXPORT_VERSION) {
        throw invalid(`its format has version ${version}; this program reads version ${EXPORT_VERSION}`)
      }
      return {
        kind: 'header',
        exportedAt: required(object, 'exported_at', keptStringOf),
        basins: optional(object, 'basins', keptStringOf) ?? '*',
        streams: optional(object, 'streams', keptStringOf) ?? '*',
      }
    }
    default:
      throw invalid('this is no line of an export')
  }
}

function recordOf(object: JsonObject): SequencedRecord {
  const seqNum = required(object, 'seq_num', count)
  const timestamp = required(object, 'timestamp', count)
  const headers = optional(object, 'headers', headersOf(utf8))
  const binaryHeaders = optional(object, 'headers_base64', headersOf(binary))
  const body = optional(object, 'body', stringOf)
  const binaryBody = optional(object, 'body_base64', stringOf)
  if (headers && binaryHeaders) throw invalid('`headers` does not go with `headers_base64`', 'headers')
  if (body !== undefined && binaryBody !== undefined)
    throw invalid('`body` does not go with `body_base64`', 'body')
  const record = {
    headers: headers ?? binaryHeaders ?? [],
    body: binaryBody === undefined ? utf8(body ?? '') : binary(binaryBody),
  }
  // Refuses what no service could have given: sizes, empty names, commands that are none.
  appendRecord(record)
  return { seqNum, timestamp, ...record }
}

function headersOf(bytesOf: (text: string) => Uint8Array): Decoder<Header[]> {
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
  const name = required(object, 'stream', keptStringOf)
  refuse(streamNameProblem(name), 'stream')
  const config = required(object, 'config', streamConfigOf)
  checkStreamConfig(config)
  const fencingToken = nullable(object, 'fencing_token', keptStringOf)
  if (fencingToken !== undefined) refuse(fencingTokenProblem(fencingToken), 'fencing_token')
  const start = required(object, 'start', count)
  const tail = positionOf(required(object, 'tail', objectOf))
  if (start > tail.seqNum) throw invalid('`start` must not lie behind the tail', 'start')
  return {
    basin: required(object, 'basin', keptStringOf),
    name,
    config: mergeStreamConfig(config, {}),
    cipher: nullable(object, 'cipher', cipherOf) ?? null,
    createdAt: nullable(object, 'created_at', timeTextOf),
    start,
    tail,
    fencingToken,
  }
}

function countsOf(value: ParsedJson, name: string): ExportCounts {
  const object = objectOf(value, name)
  return {
    basins: required(object, 'basins', count),
    streams: required(object, 'streams', count),
    records: required(object, 'records', count),
  }
}

function count(value: ParsedJson, name: string): number {
  const number = integerOf(value, name)
  checkInteger(number, name)
  return number
}
