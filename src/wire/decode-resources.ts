import type { AccessScope, AccessTokenInfo, GroupPermissions, ResourceSet } from '../model/access.ts'
import type {
  BasinConfig,
  Cipher,
  RetentionPolicy,
  StorageClass,
  StreamConfig,
  StreamConfigInput,
  TimestampingMode,
} from '../model/config.ts'
import type { BasinInfo, Page, StreamInfo } from '../model/info.ts'
import { METRIC_INTERVALS, type Metric, type MetricPoint } from '../model/metrics.ts'
import { OPERATIONS, type Operation } from '../model/operations.ts'
import { integerOfJson, MalformedResponse, type ResponseObject, recordOf } from './response-json.ts'
import {
  booleanOfJson,
  choiceOf,
  dateOf,
  responseArrayOf,
  textOfJson,
  unlessNull,
} from './response-members.ts'

/** Decoders of successful JSON responses. All throw {@link MalformedResponse}. */

/** Decodes a basin. */
export function basinInfoOf(value: unknown): BasinInfo {
  const { name, state, location, scope, created_at, deleted_at } = recordOf(value, 'basin')
  return {
    name: textOfJson(name, 'name'),
    location: textOfJson(location ?? scope ?? '', 'location'),
    // A basin that is being created can be used as soon as it is.
    state: state === 'deleting' ? 'deleting' : 'active',
    createdAt: dateOf(created_at, 'created_at'),
    deletedAt: unlessNull(deleted_at, (date) => dateOf(date, 'deleted_at')) ?? null,
  }
}

/** Decodes a stream. */
export function streamInfoOf(value: unknown): StreamInfo {
  const { name, created_at, deleted_at, cipher } = recordOf(value, 'stream')
  return {
    name: textOfJson(name, 'name'),
    createdAt: dateOf(created_at, 'created_at'),
    deletedAt: unlessNull(deleted_at, (date) => dateOf(date, 'deleted_at')) ?? null,
    cipher: cipherOf(cipher),
  }
}

/** Decodes a page of a list, whose items are in this member. */
export function decodePage<Item>(
  value: unknown,
  member: 'basins' | 'streams' | 'access_tokens',
  itemOf: (value: unknown) => Item,
): Page<Item> {
  const page = recordOf(value, 'page')
  return {
    items: responseArrayOf(page[member], member).map(itemOf),
    hasMore: booleanOfJson(page.has_more, 'has_more'),
  }
}

/** Decodes the complete configuration of a stream. */
export function streamConfigOf(value: unknown): StreamConfig {
  const { retentionPolicy, timestamping, deleteOnEmpty, ...others } = partialStreamConfigOf(value)
  if (retentionPolicy === undefined) throw new MalformedResponse('`retention_policy` is missing')
  return {
    ...others,
    retentionPolicy,
    timestamping: { mode: timestamping?.mode ?? 'client-prefer', uncapped: timestamping?.uncapped ?? false },
    deleteOnEmpty: { minAgeSeconds: deleteOnEmpty?.minAgeSeconds ?? 0 },
  }
}

/** Decodes the configuration of a basin. */
export function basinConfigOf(value: unknown): BasinConfig {
  const config = recordOf(value, 'basin configuration')
  const flagOf = (name: string) => unlessNull(config[name], (flag) => booleanOfJson(flag, name)) ?? false
  return {
    defaultStreamConfig: unlessNull(config.default_stream_config, partialStreamConfigOf) ?? {},
    streamCipher: cipherOf(config.stream_cipher),
    createStreamOnAppend: flagOf('create_stream_on_append'),
    createStreamOnRead: flagOf('create_stream_on_read'),
  }
}

function partialStreamConfigOf(value: unknown): StreamConfigInput {
  const config = recordOf(value, 'stream configuration')
  const retentionPolicy = unlessNull(config.retention_policy, retentionPolicyOf)
  const timestamping = unlessNull(config.timestamping, (group) => {
    const { mode, uncapped } = recordOf(group, 'timestamping')
    return {
      ...(mode != null && { mode: choiceOf(mode, 'mode', MODES) }),
      ...(uncapped != null && { uncapped: booleanOfJson(uncapped, 'uncapped') }),
    }
  })
  const minAgeSeconds = unlessNull(config.delete_on_empty, (group) =>
    unlessNull(recordOf(group, 'delete_on_empty').min_age_secs, (age) => integerOfJson(age, 'min_age_secs')),
  )
  const { storage_class: storageClass } = config
  return {
    ...(storageClass != null && { storageClass: choiceOf(storageClass, 'storage_class', STORAGE_CLASSES) }),
    ...(retentionPolicy !== undefined && { retentionPolicy }),
    ...(timestamping !== undefined && Object.keys(timestamping).length > 0 && { timestamping }),
    ...(minAgeSeconds !== undefined && { deleteOnEmpty: { minAgeSeconds } }),
  }
}

const STORAGE_CLASSES: readonly StorageClass[] = ['standard', 'express']
const MODES: readonly TimestampingMode[] = ['client-prefer', 'client-require', 'arrival']
const CIPHERS: readonly Cipher[] = ['aegis-256', 'aes-256-gcm']

function retentionPolicyOf(value: unknown): RetentionPolicy {
  const { age } = recordOf(value, 'retention_policy')
  return age === undefined ? 'infinite' : { ageSeconds: integerOfJson(age, 'age') }
}

function cipherOf(value: unknown): Cipher | null {
  return unlessNull(value, (cipher) => choiceOf(cipher, 'cipher', CIPHERS)) ?? null
}

/** Decodes an access token in a list. Operations of later versions are left out. */
export function accessTokenInfoOf(value: unknown): AccessTokenInfo {
  const { id, expires_at, auto_prefix_streams, scope } = recordOf(value, 'access token')
  return {
    id: textOfJson(id, 'id'),
    expiresAt: unlessNull(expires_at, (date) => dateOf(date, 'expires_at')) ?? null,
    autoPrefixStreams:
      unlessNull(auto_prefix_streams, (flag) => booleanOfJson(flag, 'auto_prefix_streams')) ?? false,
    scope: scopeOf(recordOf(scope, 'scope')),
  }
}

function scopeOf({ basins, streams, access_tokens, op_groups, ops }: ResponseObject): AccessScope {
  const groups = unlessNull(op_groups, (value) => recordOf(value, 'op_groups')) ?? {}
  const names = responseArrayOf(ops ?? [], 'ops')
  return {
    basins: resourceSetOf(basins, 'basins'),
    streams: resourceSetOf(streams, 'streams'),
    accessTokens: resourceSetOf(access_tokens, 'access_tokens'),
    opGroups: {
      account: groupOf(groups.account),
      basin: groupOf(groups.basin),
      stream: groupOf(groups.stream),
    },
    ops: OPERATIONS.filter((operation: Operation) => names.includes(operation)),
  }
}

function resourceSetOf(value: unknown, name: string): ResourceSet | null {
  const set = unlessNull(value, (given) => recordOf(given, name))
  if (set === undefined) return null
  return set.prefix == null
    ? { exact: textOfJson(set.exact, name) }
    : { prefix: textOfJson(set.prefix, name) }
}

function groupOf(value: unknown): GroupPermissions {
  const { read, write } = unlessNull(value, (group) => recordOf(group, 'op_groups')) ?? {}
  return { read: read === true, write: write === true }
}

/** Decodes the metrics of a range of time, whose times become milliseconds. */
export function metricsOf(value: unknown): readonly Metric[] {
  return responseArrayOf(recordOf(value, 'metrics').values, 'values').flatMap((entry): readonly Metric[] => {
    const { accumulation, gauge, label } = recordOf(entry, 'values')
    if (accumulation !== undefined) {
      const series = recordOf(accumulation, 'accumulation')
      const interval = choiceOf(series.interval, 'interval', METRIC_INTERVALS)
      return [{ kind: 'accumulation', ...seriesOf(series), interval }]
    }
    if (gauge !== undefined) return [{ kind: 'gauge', ...seriesOf(recordOf(gauge, 'gauge')) }]
    // Other kinds, of other servers, have no form in the library.
    if (label === undefined) return []
    const { name, values } = recordOf(label, 'label')
    const texts = responseArrayOf(values, 'values').map((text) => textOfJson(text, 'values'))
    return [{ kind: 'label', name: textOfJson(name, 'name'), values: texts }]
  })
}

function seriesOf({ name, unit, values }: ResponseObject) {
  return {
    name: textOfJson(name, 'name'),
    unit: choiceOf(unit, 'unit', ['bytes', 'operations'] as const),
    values: responseArrayOf(values, 'values').map((point): MetricPoint => {
      const [time, total] = responseArrayOf(point, 'values')
      return [integerOfJson(time, 'values') * 1000, numberOf(total)]
    }),
  }
}

function numberOf(value: unknown): number {
  if (typeof value === 'number') return value
  throw new MalformedResponse('`values` has a value that is not a number')
}
