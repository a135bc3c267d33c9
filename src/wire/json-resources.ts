import {
  type AccessScope,
  type AccessScopeInput,
  type AccessTokenInfo,
  type AccessTokenInput,
  accessTokenIdProblem,
  type GroupPermissions,
  type ResourceKind,
  type ResourceSet,
  resourceSetProblem,
} from '../model/access.ts'
import { assertBasinConfig } from '../model/basin-config.ts'
import { assertStreamConfig, type BasinConfigInput, type StreamConfigInput } from '../model/config.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { BasinInfo, LocationInfo, Page, StreamInfo } from '../model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../model/limits.ts'
import type { Metric } from '../model/metrics.ts'
import { basinNameProblem, locationNameProblem, streamNameProblem } from '../model/names.ts'
import { OPERATIONS } from '../model/operations.ts'
import { assertKnownMembers, decodeBasinConfig, decodeStreamConfig } from './json-config.ts'
import {
  arrayOf,
  booleanOf,
  type Decoder,
  dateTimeOf,
  dateTimeText,
  enumOf,
  keptStringOf,
  nullable,
  objectOf,
  required,
  stringOf,
} from './json-members.ts'
import { badJson, type JsonObject, type ParsedJson, readJson, readJsonText } from './json-reader.ts'

/** The body of a request that ensures a basin. */
export interface EnsureBasinBody {
  readonly config: BasinConfigInput
  readonly scope: string | undefined
  readonly location: string | undefined
}

/** The body of a request that creates a basin. */
export interface CreateBasinBody extends EnsureBasinBody {
  readonly basin: string
}

/** The body of a request that creates a stream. */
export interface CreateStreamBody {
  readonly stream: string
  readonly config: StreamConfigInput
}

/**
 * Decodes the body of POST basins (docs/protocol.md "Creating"). As all decoders of bodies here, throws 400
 * `bad_json` for an invalid form or name, then 422 `invalid` for an invalid configuration.
 */
export function decodeCreateBasin(body: Uint8Array): CreateBasinBody {
  const object = objectOf(readJson(body), 'body')
  const basin = required(object, 'basin', basinNameOf)
  return { basin, ...basinBodyOf(object) }
}

/**
 * Decodes the body of PUT of a basin. An absent or empty body, or null, requests the defaults.
 */
export function decodeEnsureBasin(body: Uint8Array | undefined): EnsureBasinBody {
  const value = optionalDocument(body)
  return value === null
    ? { config: {}, scope: undefined, location: undefined }
    : basinBodyOf(objectOf(value, 'body'))
}

/** Decodes the body of POST streams. */
export function decodeCreateStream(body: Uint8Array): CreateStreamBody {
  const object = objectOf(readJson(body), 'body')
  const stream = required(object, 'stream', streamNameOf)
  const config = nullable(object, 'config', decodeStreamConfig) ?? {}
  assertStreamConfig(config)
  return { stream, config }
}

/**
 * Decodes the body of PUT of a stream: its configuration. An absent or empty body, or null, requests the
 * defaults of the basin.
 */
export function decodeEnsureStream(body: Uint8Array | undefined): StreamConfigInput {
  const value = optionalDocument(body)
  const config = value === null ? {} : decodeStreamConfig(value, 'body')
  assertStreamConfig(config)
  return config
}

/**
 * Decodes the header `svc-stream-config`: the configuration of a stream that an append or read creates.
 * Throws 400 `bad_header`, also for unknown members, which would be lost; 422 `invalid` for an invalid value.
 */
export function decodeStreamConfigHeader(text: string): StreamConfigInput {
  const config = headerConfig(text)
  assertStreamConfig(config)
  return config
}

function basinBodyOf(object: JsonObject): EnsureBasinBody {
  const body = {
    config: nullable(object, 'config', decodeBasinConfig) ?? {},
    scope: nullable(object, 'scope', keptStringOf),
    location: nullable(object, 'location', locationOf),
  }
  assertBasinConfig(body.config)
  return body
}

function optionalDocument(body: Uint8Array | undefined): ParsedJson {
  return body === undefined || body.length === 0 ? null : readJson(body)
}

function basinNameOf(value: ParsedJson, name: string): string {
  const basin = keptStringOf(value, name)
  assertName(basinNameProblem(basin, BASIN_NAME_BYTES_MIN_ON_POST), name)
  return basin
}

function streamNameOf(value: ParsedJson, name: string): string {
  const stream = keptStringOf(value, name)
  assertName(streamNameProblem(stream), name)
  return stream
}

function assertName(problem: string | undefined, name: string): void {
  if (problem !== undefined) throw badJson(problem, name)
}

function headerConfig(text: string): StreamConfigInput {
  try {
    const value = readJsonText(text)
    const config = decodeStreamConfig(value, 'stream-config')
    assertKnownMembers(value)
    return config
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'bad_json') throw error
    throw new HeadwaterError('bad_header', `Invalid stream-config header: ${error.message}`, {
      field: 'stream-config',
      cause: error,
    })
  }
}

/** A basin (docs/protocol.md "Basin and stream infos"). */
export function basinInfoJson(info: BasinInfo): string {
  return JSON.stringify(basinInfoForm(info))
}

/** A stream. */
export function streamInfoJson(info: StreamInfo): string {
  return JSON.stringify(streamInfoForm(info))
}

/** The list of basins. */
export function basinPageJson(page: Page<BasinInfo>): string {
  return JSON.stringify({ basins: page.items.map(basinInfoForm), has_more: page.hasMore })
}

/** The list of streams. */
export function streamPageJson(page: Page<StreamInfo>): string {
  return JSON.stringify({ streams: page.items.map(streamInfoForm), has_more: page.hasMore })
}

function basinInfoForm(info: BasinInfo): object {
  return {
    name: info.name,
    scope: info.location,
    location: info.location,
    state: info.state,
    created_at: dateTimeText(info.createdAt),
    deleted_at: info.deletedAt && dateTimeText(info.deletedAt),
  }
}

function streamInfoForm(info: StreamInfo): object {
  return {
    name: info.name,
    created_at: dateTimeText(info.createdAt),
    deleted_at: info.deletedAt && dateTimeText(info.deletedAt),
    cipher: info.cipher,
  }
}

/** Decodes the name of a location (docs/protocol.md "Locations"). Throws 400 `bad_json`. */
const locationOf: Decoder<string> = (value, name) => {
  const location = keptStringOf(value, name)
  const problem = locationNameProblem(location)
  if (problem !== undefined) throw badJson(problem, name)
  return location
}

/** Decodes the body of PUT of the default location: its name as a string. Throws 400 `bad_json`. */
export function decodeLocation(body: Uint8Array): string {
  return locationOf(readJson(body), 'body')
}

/** A location. */
export function locationJson(location: LocationInfo): string {
  return JSON.stringify(locationForm(location))
}

/** The list of locations: an array. */
export function locationsJson(locations: readonly LocationInfo[]): string {
  return JSON.stringify(locations.map(locationForm))
}

function locationForm({ name, isPrivate }: LocationInfo): object {
  return { name, is_private: isPrivate }
}

/** The metrics response (docs/protocol.md "Metrics responses"). Its times are in seconds. */
export function metricsJson(metrics: readonly Metric[]): string {
  return JSON.stringify({ values: metrics.map(metricForm) })
}

function metricForm(metric: Metric): object {
  const { kind, ...members } = metric
  if (kind !== 'accumulation' && kind !== 'gauge') return { [kind]: members }
  return { [kind]: { ...members, values: metric.values.map(([time, value]) => [time / 1000, value]) } }
}

/** Decodes the body of POST access-tokens (docs/protocol.md "Issuing a token"). Throws 400 `bad_json`. */
export function decodeAccessToken(body: Uint8Array): AccessTokenInput {
  const object = objectOf(readJson(body), 'body')
  return {
    id: required(object, 'id', idOf),
    expiresAt: nullable(object, 'expires_at', dateTimeOf),
    expiresAtText: nullable(object, 'expires_at', stringOf),
    autoPrefixStreams: nullable(object, 'auto_prefix_streams', booleanOf),
    scope: required(object, 'scope', scopeOf),
  }
}

/** The response to POST: the only one that contains the token. */
export function issuedTokenJson(token: string): string {
  return JSON.stringify({ access_token: token })
}

/** The list of access tokens. */
export function accessTokenPageJson(page: Page<AccessTokenInfo>): string {
  return JSON.stringify({ access_tokens: page.items.map(accessTokenForm), has_more: page.hasMore })
}

const idOf: Decoder<string> = (value, name) => {
  const id = keptStringOf(value, name)
  const problem = accessTokenIdProblem(id)
  if (problem !== undefined) throw badJson(problem, name)
  return id
}

const scopeOf: Decoder<AccessScopeInput> = (value, name) => {
  const object = objectOf(value, name)
  return {
    basins: nullable(object, 'basins', resourceSetOf('basins')),
    streams: nullable(object, 'streams', resourceSetOf('streams')),
    accessTokens: nullable(object, 'access_tokens', resourceSetOf('accessTokens')),
    opGroups: nullable(object, 'op_groups', opGroupsOf),
    ops: nullable(object, 'ops', opsOf),
  }
}

/** Exactly one of `exact` and `prefix`. */
function resourceSetOf(kind: ResourceKind): Decoder<ResourceSet> {
  return (value, name) => {
    const object = objectOf(value, name)
    const exact = nullable(object, 'exact', keptStringOf)
    const prefix = nullable(object, 'prefix', keptStringOf)
    if ((exact === undefined) === (prefix === undefined)) {
      throw badJson(`\`${name}\` must have one of \`exact\` and \`prefix\``, name)
    }
    const set = prefix === undefined ? { exact: exact! } : { prefix }
    const problem = resourceSetProblem(kind, set)
    if (problem !== undefined) throw badJson(problem, name)
    return set
  }
}

const opGroupsOf: Decoder<AccessScopeInput['opGroups']> = (value, name) => {
  const object = objectOf(value, name)
  return {
    account: nullable(object, 'account', groupOf) ?? null,
    basin: nullable(object, 'basin', groupOf) ?? null,
    stream: nullable(object, 'stream', groupOf) ?? null,
  }
}

const groupOf: Decoder<GroupPermissions> = (value, name) => {
  const object = objectOf(value, name)
  return {
    read: nullable(object, 'read', booleanOf) ?? false,
    write: nullable(object, 'write', booleanOf) ?? false,
  }
}

const operationOf = enumOf(OPERATIONS)

const opsOf: Decoder<NonNullable<AccessScopeInput['ops']>> = (value, name) =>
  arrayOf(value, name).map((operation) => operationOf(operation, name))

function accessTokenForm(token: AccessTokenInfo): object {
  const { id, expiresAt, expiresAtText, autoPrefixStreams, scope } = token
  return {
    id,
    expires_at: expiresAtText ?? (expiresAt && dateTimeText(expiresAt)),
    auto_prefix_streams: autoPrefixStreams,
    scope: scopeForm(scope),
  }
}

function scopeForm({ basins, streams, accessTokens, opGroups, ops }: AccessScope): object {
  return { basins, streams, access_tokens: accessTokens, op_groups: opGroups, ops }
}
