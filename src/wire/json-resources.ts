import {
  type AccessScopeInput,
  type AccessTokenInfo,
  type AccessTokenInput,
  accessScope,
  accessTokenIdProblem,
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
import { METRIC_INTERVALS, type Metric, type MetricPoint, type MetricUnit } from '../model/metrics.ts'
import { basinNameProblem, locationNameProblem, streamNameProblem } from '../model/names.ts'
import {
  arrayOf,
  booleanOf,
  type Field,
  type Form,
  listOf,
  Malformed,
  nameOf,
  type ObjectForm,
  objectForm,
  objectOf,
  oneOf,
  type Reader,
  readJson,
  required,
  safeIntegerOf,
  stringOf,
  TIME,
  type TwoWay,
} from './json.ts'
import { BASIN_CONFIG_INPUT, cipherOf, STREAM_CONFIG_INPUT } from './json-config.ts'

/**
 * What the control plane exchanges as JSON, at both ends of the protocol. All decoders of request bodies throw
 * 400 `bad_json` for an invalid form or name, then 422 `invalid` for an invalid configuration.
 */

const NAME: Field<string> = { form: stringOf, required: true }

const locationOf = nameOf(locationNameProblem)

interface EnsureBasinBody {
  readonly config: BasinConfigInput
  readonly scope?: string | undefined
  readonly location?: string | undefined
}

interface CreateBasinBody extends EnsureBasinBody {
  readonly basin: string
}

interface CreateStreamBody {
  readonly stream: string
  readonly config: StreamConfigInput
}

const ENSURE_BASIN_FIELDS = {
  config: { form: BASIN_CONFIG_INPUT, absent: {} },
  scope: stringOf,
  location: locationOf,
}

export const ENSURE_BASIN = objectForm<EnsureBasinBody>(ENSURE_BASIN_FIELDS)

/** The body of POST basins (docs/protocol.md "Creating"). */
export const CREATE_BASIN = objectForm<CreateBasinBody>({
  basin: { form: nameOf((name) => basinNameProblem(name, BASIN_NAME_BYTES_MIN_ON_POST)), required: true },
  ...ENSURE_BASIN_FIELDS,
})

export const CREATE_STREAM = objectForm<CreateStreamBody>({
  stream: { form: nameOf(streamNameProblem), required: true },
  config: { form: STREAM_CONFIG_INPUT, absent: {} },
})

export function decodeCreateBasin(body: Uint8Array): CreateBasinBody {
  const decoded = CREATE_BASIN.of(readJson(body))
  assertBasinConfig(decoded.config)
  return decoded
}

/** Decodes the body of PUT of a basin. An absent or empty body, or null, requests the defaults. */
export function decodeEnsureBasin(body: Uint8Array | undefined): EnsureBasinBody {
  const decoded = ENSURE_BASIN.of(readOptionalJson(body))
  assertBasinConfig(decoded.config)
  return decoded
}

export function decodeCreateStream(body: Uint8Array): CreateStreamBody {
  const decoded = CREATE_STREAM.of(readJson(body))
  assertStreamConfig(decoded.config)
  return decoded
}

/** Decodes the body of PUT of a stream. An absent or empty body, or null, requests the basin's defaults. */
export function decodeEnsureStream(body: Uint8Array | undefined): StreamConfigInput {
  const config = STREAM_CONFIG_INPUT.of(readOptionalJson(body))
  assertStreamConfig(config)
  return config
}

function readOptionalJson(body: Uint8Array | undefined): unknown {
  return body === undefined || body.length === 0 ? {} : (readJson(body) ?? {})
}

/** A basin (docs/protocol.md "Basin and stream infos"). */
export const BASIN_INFO: ObjectForm<BasinInfo> = objectForm(
  {
    name: NAME,
    location: { form: stringOf, alias: 'scope', absent: '' },
    // A basin that is being created can be used as soon as it is.
    state: { form: (state) => (state === 'deleting' ? state : 'active'), absent: 'active' },
    createdAt: { form: TIME, required: true },
    deletedAt: { form: TIME, absent: null },
  },
  'basin',
)

/** A stream, without what only the library has. */
export const STREAM_INFO: ObjectForm<Omit<StreamInfo, 'metadata' | 'expiry'>> = objectForm(
  {
    name: NAME,
    createdAt: { form: TIME, required: true },
    deletedAt: { form: TIME, absent: null },
    cipher: { form: cipherOf, absent: null },
  },
  'stream',
)

/** A page of a list, whose items are in this member. */
function pageForm<Item>(name: string, item: Form<Item>): ObjectForm<Page<Item>> {
  return objectForm(
    {
      items: { form: listOf(item), name, required: true },
      hasMore: { form: booleanOf, required: true },
    },
    'page',
  )
}

export const BASIN_PAGE: ObjectForm<Page<BasinInfo>> = pageForm('basins', BASIN_INFO)

export const STREAM_PAGE: ObjectForm<Page<StreamInfo>> = pageForm('streams', STREAM_INFO)

export const LOCATION_INFO: ObjectForm<LocationInfo> = objectForm({
  name: NAME,
  isPrivate: booleanOf,
})

/** The list of locations: an array. */
export function locationsJson(locations: readonly LocationInfo[]): string {
  return JSON.stringify(listOf(LOCATION_INFO).write(locations, null))
}

/** Decodes the body of PUT of the default location: its name as a string. Throws 400 `bad_json`. */
export function decodeLocation(body: Uint8Array): string {
  return locationOf(readJson(body), 'body')
}

const RESOURCE_SET = objectForm<{ readonly exact?: string; readonly prefix?: string }>({
  exact: stringOf,
  prefix: stringOf,
})

function resourcesOf(kind: ResourceKind): Reader<ResourceSet> {
  return (value, name) => {
    const { exact, prefix } = RESOURCE_SET.read(value, name)
    if ((exact === undefined) === (prefix === undefined)) {
      throw new Malformed(`\`${name}\` must have one of \`exact\` and \`prefix\``, name)
    }
    const set = prefix === undefined ? { exact: exact! } : { prefix }
    const problem = resourceSetProblem(kind, set)
    if (problem !== undefined) throw new Malformed(problem, name)
    return set
  }
}

type OperationGroups = NonNullable<AccessScopeInput['opGroups']>

const PERMISSIONS = objectForm<NonNullable<OperationGroups['account']>>({
  read: { form: booleanOf, absent: false },
  write: { form: booleanOf, absent: false },
})

const OPERATION_GROUPS = objectForm<OperationGroups>({
  account: PERMISSIONS,
  basin: PERMISSIONS,
  stream: PERMISSIONS,
})

function tokenForm(operationsOf: Form<readonly Operation[]>): ObjectForm<AccessTokenInput> {
  const scope = objectForm<AccessScopeInput>({
    basins: resourcesOf('basins'),
    streams: resourcesOf('streams'),
    accessTokens: resourcesOf('accessTokens'),
    opGroups: OPERATION_GROUPS,
    ops: operationsOf,
  })
  return objectForm<AccessTokenInput>({
    id: { form: nameOf(accessTokenIdProblem), required: true },
    expiresAt: TIME,
    expiresAtText: { form: stringOf, name: 'expires_at' },
    autoPrefixStreams: booleanOf,
    scope: { form: scope, required: true },
  })
}

/** The body of POST access-tokens (docs/protocol.md "Issuing a token"). */
export const ACCESS_TOKEN: ObjectForm<AccessTokenInput> = tokenForm(listOf(oneOf(OPERATIONS)))

/** Decodes the body of POST access-tokens. Throws 400 `bad_json`. */
export function decodeAccessToken(body: Uint8Array): AccessTokenInput {
  return ACCESS_TOKEN.of(readJson(body))
}

/** The response to POST: the only one that contains the token. */
export const ISSUED_TOKEN: ObjectForm<{ readonly accessToken: string }> = objectForm(
  {
    accessToken: { form: stringOf, required: true },
  },
  'access token',
)

/** Operations of later versions are left out. */
const LISTED_TOKEN = tokenForm((value, name) => {
  const listed = arrayOf(value, name)
  return OPERATIONS.filter((operation) => listed.includes(operation))
})

export const ACCESS_TOKEN_PAGE: ObjectForm<Page<AccessTokenInfo>> = pageForm<AccessTokenInfo>(
  'access_tokens',
  {
    read(value, name) {
      const { id, expiresAt = null, autoPrefixStreams = false, scope } = LISTED_TOKEN.read(value, name)
      return { id, expiresAt: expiresAt as Date | null, autoPrefixStreams, scope: accessScope(scope) }
    },
    write: LISTED_TOKEN.write,
  },
)

/** Points of a metric, with their times in seconds. */
const POINTS: TwoWay<readonly MetricPoint[]> = {
  read: (value, name) =>
    arrayOf(value, name).map((point) => {
      const [time, total] = arrayOf(point, name)
      if (typeof total !== 'number') throw new Malformed(`\`${name}\` has a value that is not a number`, name)
      return [safeIntegerOf(time, name) * 1000, total]
    }),
  write: (points) => points.map(([time, total]) => [time / 1000, total]),
}

type MembersOfKind<Kind> = Omit<Extract<Metric, { readonly kind: Kind }>, 'kind'>

const SERIES = {
  name: NAME,
  unit: { form: oneOf<MetricUnit>(['bytes', 'operations']), required: true },
  values: { form: POINTS, required: true },
}

const METRICS = {
  accumulation: objectForm<MembersOfKind<'accumulation'>>({
    ...SERIES,
    interval: { form: oneOf(METRIC_INTERVALS), required: true },
  }),
  gauge: objectForm<MembersOfKind<'gauge'>>(SERIES),
  label: objectForm<MembersOfKind<'label'>>({
    name: NAME,
    values: { form: listOf(stringOf), required: true },
  }),
}
const METRIC_KINDS = Object.keys(METRICS) as Metric['kind'][]

/** The metrics response (docs/protocol.md "Metrics responses"). */
export function metricsJson(metrics: readonly Metric[]): string {
  const values = metrics.map((metric) => {
    const form = METRICS[metric.kind] as ObjectForm<object>
    return { [metric.kind]: form.write(metric, null) }
  })
  return JSON.stringify({ values })
}

/** Reads the metrics response. Other kinds, of other servers, have no form in the library. */
export function metricsOf(value: unknown): readonly Metric[] {
  return required(objectOf(value, 'metrics'), 'values', arrayOf).flatMap((item): readonly Metric[] => {
    const entry = objectOf(item, 'values')
    const kind = METRIC_KINDS.find((one) => entry[one] !== undefined)
    return kind === undefined ? [] : [{ kind, ...METRICS[kind].read(entry[kind], kind) } as Metric]
  })
}
