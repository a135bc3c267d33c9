import {
  type AccessScope,
  type AccessScopeInput,
  type AccessTokenInfo,
  type AccessTokenInput,
  accessTokenIdProblem,
  type GroupPermissions,
  OPERATIONS,
  type Operation,
  type ResourceKind,
  type ResourceSet,
  resourceSetProblem,
} from '../model/access.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfigInput,
  type StreamConfigInput,
} from '../model/config.ts'
import type { BasinInfo, LocationInfo, Page, StreamInfo } from '../model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../model/limits.ts'
import { METRIC_INTERVALS, type Metric, type MetricPoint } from '../model/metrics.ts'
import { basinNameProblem, locationNameProblem, streamNameProblem } from '../model/names.ts'
import { millisecondsOf } from '../model/validation.ts'
import {
  arrayOf,
  booleanOf,
  type Form,
  group,
  type JsonObject,
  Malformed,
  nullable,
  objectOf,
  oneOf,
  plain,
  type Reader,
  readJson,
  required,
  safeIntegerOf,
  stringOf,
  timeOf,
  timeText,
} from './json.ts'
import {
  basinConfigForm,
  cipherOf,
  readBasinConfig,
  readStreamConfig,
  streamConfigForm,
} from './json-config.ts'

/** What the control plane exchanges as JSON, at both ends of the protocol. */

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
  return { basin, ...ensureBasinBodyOf(object) }
}

/** Decodes the body of PUT of a basin. An absent or empty body, or null, requests the defaults. */
export function decodeEnsureBasin(body: Uint8Array | undefined): EnsureBasinBody {
  return ensureBasinBodyOf(objectOf(readOptionalJson(body), 'body'))
}

/** Decodes the body of POST streams. */
export function decodeCreateStream(body: Uint8Array): CreateStreamBody {
  const object = objectOf(readJson(body), 'body')
  const stream = required(object, 'stream', streamNameOf)
  const config = nullable(object, 'config', readStreamConfig) ?? {}
  assertStreamConfig(config)
  return { stream, config }
}

/**
 * Decodes the body of PUT of a stream: its configuration. An absent or empty body, or null, requests the
 * defaults of the basin.
 */
export function decodeEnsureStream(body: Uint8Array | undefined): StreamConfigInput {
  const config = readStreamConfig(readOptionalJson(body), 'body')
  assertStreamConfig(config)
  return config
}

function ensureBasinBodyOf(object: JsonObject): EnsureBasinBody {
  const body = {
    config: nullable(object, 'config', readBasinConfig) ?? {},
    scope: nullable(object, 'scope', stringOf),
    location: nullable(object, 'location', locationOf),
  }
  assertBasinConfig(body.config)
  return body
}

function readOptionalJson(body: Uint8Array | undefined): unknown {
  return body === undefined || body.length === 0 ? {} : (readJson(body) ?? {})
}

/** A reader of a string without a problem. */
function nameOf(problemOf: (name: string) => string | undefined): Reader<string> {
  return (value, name) => {
    const text = stringOf(value, name)
    const problem = problemOf(text)
    if (problem !== undefined) throw new Malformed(problem, name)
    return text
  }
}

const basinNameOf = nameOf((name) => basinNameProblem(name, BASIN_NAME_BYTES_MIN_ON_POST))
const streamNameOf = nameOf(streamNameProblem)
const locationOf = nameOf(locationNameProblem)
const tokenIdOf = nameOf(accessTokenIdProblem)

/** The body of POST basins. */
export function createBasinText(basin: string, config: BasinConfigInput): string {
  return JSON.stringify({ basin, config: basinConfigForm(config) })
}

/** The body of PUT of a basin. */
export function ensureBasinText(config: BasinConfigInput): string {
  return JSON.stringify({ config: basinConfigForm(config) })
}

/** The body of POST streams. */
export function createStreamText(stream: string, config: StreamConfigInput): string {
  return JSON.stringify({ stream, config: streamConfigForm(config) })
}

/** The body of PUT of a stream, and the header `svc-stream-config`. */
export function streamConfigText(config: StreamConfigInput): string {
  return JSON.stringify(streamConfigForm(config))
}

/** A basin (docs/protocol.md "Basin and stream infos"). */
export function basinInfoJson(info: BasinInfo): string {
  return JSON.stringify(basinInfoForm(info))
}

function basinInfoForm(info: BasinInfo): object {
  return {
    name: info.name,
    scope: info.location,
    location: info.location,
    state: info.state,
    created_at: timeText(info.createdAt),
    deleted_at: info.deletedAt && timeText(info.deletedAt),
  }
}

/** Reads a basin in a response. */
export function basinInfoOf(value: unknown): BasinInfo {
  const info = objectOf(value, 'basin')
  return {
    name: required(info, 'name', stringOf),
    location: nullable(info, 'location', stringOf) ?? nullable(info, 'scope', stringOf) ?? '',
    // A basin that is being created can be used as soon as it is.
    state: info.state === 'deleting' ? 'deleting' : 'active',
    createdAt: required(info, 'created_at', timeOf),
    deletedAt: nullable(info, 'deleted_at', timeOf) ?? null,
  }
}

/** A stream. */
export function streamInfoJson(info: StreamInfo): string {
  return JSON.stringify(streamInfoForm(info))
}

function streamInfoForm(info: StreamInfo): object {
  return {
    name: info.name,
    created_at: timeText(info.createdAt),
    deleted_at: info.deletedAt && timeText(info.deletedAt),
    cipher: info.cipher,
  }
}

/** Reads a stream in a response. */
export function streamInfoOf(value: unknown): StreamInfo {
  const info = objectOf(value, 'stream')
  return {
    name: required(info, 'name', stringOf),
    createdAt: required(info, 'created_at', timeOf),
    deletedAt: nullable(info, 'deleted_at', timeOf) ?? null,
    cipher: nullable(info, 'cipher', cipherOf) ?? null,
  }
}

/** The list of basins. */
export function basinPageJson({ items, hasMore }: Page<BasinInfo>): string {
  return JSON.stringify({ basins: items.map(basinInfoForm), has_more: hasMore })
}

/** The list of streams. */
export function streamPageJson({ items, hasMore }: Page<StreamInfo>): string {
  return JSON.stringify({ streams: items.map(streamInfoForm), has_more: hasMore })
}

/** The list of access tokens. */
export function accessTokenPageJson({ items, hasMore }: Page<AccessTokenInfo>): string {
  return JSON.stringify({ access_tokens: items.map(accessTokenForm), has_more: hasMore })
}

/** Reads a page of a list in a response. Its items are in this member. */
export function pageOf<Item>(
  value: unknown,
  member: 'basins' | 'streams' | 'access_tokens',
  itemOf: (value: unknown) => Item,
): Page<Item> {
  const page = objectOf(value, 'page')
  return {
    items: required(page, member, arrayOf).map(itemOf),
    hasMore: required(page, 'has_more', booleanOf),
  }
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

/** Exactly one of `exact` and `prefix`. */
function resourceSetOf(value: unknown, name: string): ResourceSet {
  const object = objectOf(value, name)
  const exact = nullable(object, 'exact', stringOf)
  const prefix = nullable(object, 'prefix', stringOf)
  if ((exact === undefined) === (prefix === undefined)) {
    throw new Malformed(`\`${name}\` must have one of \`exact\` and \`prefix\``, name)
  }
  return prefix === undefined ? { exact: exact! } : { prefix }
}

function permissionsOf(value: unknown, name: string): GroupPermissions {
  const permissions = objectOf(value, name)
  return {
    read: nullable(permissions, 'read', booleanOf) ?? false,
    write: nullable(permissions, 'write', booleanOf) ?? false,
  }
}

function operationsOf(value: unknown, name: string): readonly Operation[] {
  return arrayOf(value, name).map((operation) => operationOf(operation, name))
}

const operationOf = oneOf(OPERATIONS)

const RESOURCES = plain(resourceSetOf)
const PERMISSIONS: Form<GroupPermissions> = plain(permissionsOf)

/** The table of the members of a scope, for requests and responses. */
const SCOPE = group<AccessScopeInput>({
  basins: { name: 'basins', form: RESOURCES },
  streams: { name: 'streams', form: RESOURCES },
  accessTokens: { name: 'access_tokens', form: RESOURCES },
  opGroups: {
    name: 'op_groups',
    form: group<NonNullable<AccessScopeInput['opGroups']>>({
      account: { name: 'account', form: PERMISSIONS },
      basin: { name: 'basin', form: PERMISSIONS },
      stream: { name: 'stream', form: PERMISSIONS },
    }),
  },
  ops: { name: 'ops', form: plain(operationsOf) },
})

/** Decodes the body of POST access-tokens (docs/protocol.md "Issuing a token"). Throws 400 `bad_json`. */
export function decodeAccessToken(body: Uint8Array): AccessTokenInput {
  const token = objectOf(readJson(body), 'body')
  return {
    id: required(token, 'id', tokenIdOf),
    expiresAt: nullable(token, 'expires_at', timeOf),
    expiresAtText: nullable(token, 'expires_at', stringOf),
    autoPrefixStreams: nullable(token, 'auto_prefix_streams', booleanOf),
    scope: required(token, 'scope', scopeInputOf),
  }
}

function scopeInputOf(value: unknown, name: string): AccessScopeInput {
  const scope = SCOPE.read(value, name, {})
  for (const kind of ['basins', 'streams', 'accessTokens'] as const satisfies readonly ResourceKind[]) {
    const problem = scope[kind] && resourceSetProblem(kind, scope[kind])
    if (problem) throw new Malformed(problem, kind)
  }
  return scope
}

/** The body of POST access-tokens. */
export function accessTokenText({ id, expiresAt, autoPrefixStreams, scope }: AccessTokenInput): string {
  return JSON.stringify({
    id,
    expires_at: expiresAt == null ? undefined : new Date(millisecondsOf(expiresAt)).toISOString(),
    auto_prefix_streams: autoPrefixStreams,
    scope: SCOPE.write(scope, undefined),
  })
}

/** The response to POST: the only one that contains the token. */
export function issuedTokenJson(token: string): string {
  return JSON.stringify({ access_token: token })
}

/** Reads the token in the response to POST. */
export function issuedTokenOf(value: unknown): string {
  return required(objectOf(value, 'access token'), 'access_token', stringOf)
}

function accessTokenForm(token: AccessTokenInfo): object {
  const { id, expiresAt, expiresAtText, autoPrefixStreams, scope } = token
  return {
    id,
    expires_at: expiresAtText ?? (expiresAt && timeText(expiresAt)),
    auto_prefix_streams: autoPrefixStreams,
    scope: SCOPE.write(scope, null),
  }
}

/** Reads an access token in a list. Operations of later versions are left out. */
export function accessTokenInfoOf(value: unknown): AccessTokenInfo {
  const token = objectOf(value, 'access token')
  return {
    id: required(token, 'id', stringOf),
    expiresAt: nullable(token, 'expires_at', timeOf) ?? null,
    autoPrefixStreams: nullable(token, 'auto_prefix_streams', booleanOf) ?? false,
    scope: required(token, 'scope', scopeOf),
  }
}

const NOTHING: GroupPermissions = { read: false, write: false }

function scopeOf(value: unknown, name: string): AccessScope {
  const { ops, ...others } = objectOf(value, name)
  const listed = nullable({ ops }, 'ops', arrayOf) ?? []
  const { basins = null, streams = null, accessTokens = null, opGroups } = SCOPE.read(others, name, {})
  return {
    basins,
    streams,
    accessTokens,
    opGroups: {
      account: NOTHING,
      basin: NOTHING,
      stream: NOTHING,
      ...(opGroups as Partial<AccessScope['opGroups']>),
    },
    ops: OPERATIONS.filter((operation) => listed.includes(operation)),
  }
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

/** Reads the metrics response. */
export function metricsOf(value: unknown): readonly Metric[] {
  return required(objectOf(value, 'metrics'), 'values', arrayOf).flatMap((entry): readonly Metric[] => {
    const { accumulation, gauge, label } = objectOf(entry, 'values')
    if (accumulation !== undefined) {
      const series = objectOf(accumulation, 'accumulation')
      const interval = required(series, 'interval', oneOf(METRIC_INTERVALS))
      return [{ kind: 'accumulation', ...seriesOf(series), interval }]
    }
    if (gauge !== undefined) return [{ kind: 'gauge', ...seriesOf(objectOf(gauge, 'gauge')) }]
    // Other kinds, of other servers, have no form in the library.
    if (label === undefined) return []
    const { name, values } = objectOf(label, 'label')
    const texts = arrayOf(values, 'values').map((text) => stringOf(text, 'values'))
    return [{ kind: 'label', name: stringOf(name, 'name'), values: texts }]
  })
}

function seriesOf(series: JsonObject) {
  return {
    name: required(series, 'name', stringOf),
    unit: required(series, 'unit', oneOf(['bytes', 'operations'] as const)),
    values: required(series, 'values', arrayOf).map((point): MetricPoint => {
      const [time, total] = arrayOf(point, 'values')
      if (typeof total !== 'number')
        throw new Malformed('`values` has a value that is not a number', 'values')
      return [safeIntegerOf(time, 'values') * 1000, total]
    }),
  }
}
