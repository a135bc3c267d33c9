import type { BasinConfigInput, StreamConfigInput } from '../model/config.ts'
import { checkBasinConfig, checkStreamConfig } from '../model/config-validation.ts'
import { HeadwaterError } from '../model/errors.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../model/limits.ts'
import { basinNameProblem, streamNameProblem } from '../model/names.ts'
import { basinConfigOf, streamConfigOf } from './json-config-input.ts'
import { locationOf } from './json-location.ts'
import { keptStringOf, nullable, objectOf, required } from './json-members.ts'
import { readJson, readJsonText } from './json-reader.ts'
import { badJson, type JsonObject, type ParsedJson } from './json-values.ts'

/**
 * The bodies that create and ensure basins and streams (wire-behaviour.md 1.8, rulings.md "Basins"). All throw 400 `bad_json` for a
 * wrong shape or name, then 422 `invalid` for a configuration without meaning.
 */
export interface EnsureBasinBody {
  readonly config: BasinConfigInput
  readonly scope: string | undefined
  readonly location: string | undefined
}

export interface CreateBasinBody extends EnsureBasinBody {
  readonly basin: string
}

export interface CreateStreamBody {
  readonly stream: string
  readonly config: StreamConfigInput
}

/** POST basins. */
export function decodeCreateBasin(body: Uint8Array): CreateBasinBody {
  const object = objectOf(readJson(body), 'body')
  const basin = required(object, 'basin', basinNameOf)
  return { basin, ...basinBodyOf(object) }
}

/** PUT of a basin. An absent body (see `optionalJsonBody`) or a literal null asks for the defaults. */
export function decodeEnsureBasin(body: Uint8Array | undefined): EnsureBasinBody {
  const value = optionalDocument(body)
  return value === null
    ? { config: {}, scope: undefined, location: undefined }
    : basinBodyOf(objectOf(value, 'body'))
}

/** POST streams. */
export function decodeCreateStream(body: Uint8Array): CreateStreamBody {
  const object = objectOf(readJson(body), 'body')
  const stream = required(object, 'stream', streamNameOf)
  const config = nullable(object, 'config', streamConfigOf) ?? {}
  checkStreamConfig(config)
  return { stream, config }
}

/** PUT of a stream: the configuration itself. An absent body or a literal null asks for the basin's defaults. */
export function decodeEnsureStream(body: Uint8Array | undefined): StreamConfigInput {
  const value = optionalDocument(body)
  const config = value === null ? {} : streamConfigOf(value, 'body')
  checkStreamConfig(config)
  return config
}

/**
 * The header `svc-stream-config`: the configuration of the stream if an append or a read creates it. Throws 400 `bad_header`, or 422
 * `invalid` for a configuration without meaning.
 */
export function decodeStreamConfigHeader(text: string): StreamConfigInput {
  const config = headerConfig(text)
  checkStreamConfig(config)
  return config
}

function basinBodyOf(object: JsonObject): EnsureBasinBody {
  const body = {
    config: nullable(object, 'config', basinConfigOf) ?? {},
    scope: nullable(object, 'scope', keptStringOf),
    location: nullable(object, 'location', locationOf),
  }
  checkBasinConfig(body.config)
  return body
}

function optionalDocument(body: Uint8Array | undefined): ParsedJson {
  return body === undefined || body.length === 0 ? null : readJson(body)
}

function basinNameOf(value: ParsedJson, name: string): string {
  const basin = keptStringOf(value, name)
  refuseName(basinNameProblem(basin, BASIN_NAME_BYTES_MIN_ON_POST), name)
  return basin
}

function streamNameOf(value: ParsedJson, name: string): string {
  const stream = keptStringOf(value, name)
  refuseName(streamNameProblem(stream), name)
  return stream
}

function refuseName(problem: string | undefined, name: string): void {
  if (problem !== undefined) throw badJson(problem, name)
}

function headerConfig(text: string): StreamConfigInput {
  try {
    return streamConfigOf(readJsonText(text), 'stream-config')
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'bad_json') throw error
    throw new HeadwaterError('bad_header', `Invalid stream-config header: ${error.message}`, {
      field: 'stream-config',
      cause: error,
    })
  }
}
