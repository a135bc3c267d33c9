import { basinConfig, normalizeStreamConfig, SYSTEM_STREAM_CONFIG } from '../core/config.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfig,
  type BasinConfigInput,
  type BasinReconfiguration,
  type Cipher,
  type RetentionPolicy,
  type StorageClass,
  type StreamConfig,
  type StreamConfigInput,
  type StreamReconfiguration,
  type TimestampingMode,
} from '../model/config.ts'
import { HeadwaterError } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import {
  booleanOf,
  type Form,
  group,
  integerOf,
  type JsonObject,
  Malformed,
  nested,
  objectOf,
  oneOf,
  parseJson,
  plain,
  readJson,
} from './json.ts'

/** Configurations (docs/protocol.md "Configuration"): one table of members for requests and responses. */

type Timestamping = NonNullable<StreamReconfiguration['timestamping']>
type Deletion = NonNullable<StreamReconfiguration['deleteOnEmpty']>

const MODES: readonly TimestampingMode[] = ['client-prefer', 'client-require', 'arrival']
const CLASSES: readonly StorageClass[] = ['standard', 'express']

export const cipherOf = oneOf<Cipher>(['aegis-256', 'aes-256-gcm'])

/** Exactly one member: `{"age": seconds}` or `{"infinite": {}}`. */
const RETENTION_POLICY: Form<RetentionPolicy> = {
  read(value, name) {
    const [choice, ...others] = Object.entries(objectOf(value, name))
    if (choice === undefined || others.length > 0) {
      throw new Malformed(`\`${name}\` must have exactly one member`, name)
    }
    const [kind, content] = choice
    if (kind === 'age') return { ageSeconds: integerOf(content, 'age', `1 to ${INTEGER_MAX}`) }
    if (kind !== 'infinite') throw new Malformed(`\`${name}\` must be \`age\` or \`infinite\``, name)
    objectOf(content, 'infinite')
    return 'infinite'
  },
  write: (policy) => (policy === 'infinite' ? { infinite: {} } : { age: policy.ageSeconds }),
}

const TIMESTAMPING = group<Timestamping>({
  mode: { name: 'mode', form: plain(oneOf(MODES)) },
  uncapped: { name: 'uncapped', form: plain(booleanOf) },
})

const DELETION = group<Deletion>({
  minAgeSeconds: {
    name: 'min_age_secs',
    form: plain((value, name) => integerOf(value, name)),
    nullable: false,
  },
})

const DELETE_ON_EMPTY: Form<Deletion> = {
  ...nested(DELETION),
  read: (value, name, rules) =>
    // Without its member, it sets the member to its default.
    rules.nullClears
      ? DELETION.read(value, name, rules)
      : { minAgeSeconds: 0, ...DELETION.read(value, name, rules) },
}

const STREAM_CONFIG = group<StreamReconfiguration>({
  storageClass: { name: 'storage_class', form: plain(oneOf(CLASSES)) },
  retentionPolicy: { name: 'retention_policy', form: RETENTION_POLICY },
  timestamping: { name: 'timestamping', form: nested(TIMESTAMPING) },
  deleteOnEmpty: { name: 'delete_on_empty', form: DELETE_ON_EMPTY },
})

/** Null is not allowed, and in a PATCH it keeps the value. */
const FLAG = { form: plain(booleanOf), nullable: false, clearable: false }

const BASIN_CONFIG = group<BasinReconfiguration>({
  defaultStreamConfig: { name: 'default_stream_config', form: nested(STREAM_CONFIG) },
  streamCipher: { name: 'stream_cipher', form: plain(cipherOf) },
  createStreamOnAppend: { name: 'create_stream_on_append', ...FLAG },
  createStreamOnRead: { name: 'create_stream_on_read', ...FLAG },
})

/** A request for what does not exist yet: null and absent members are the same. */
const WHOLE = {}
const CHANGE = { nullClears: true }
const KNOWN_ONLY = { knownOnly: true }

/** Reads the configuration of a stream in a request; `assertStreamConfig` checks its values. */
export function readStreamConfig(value: unknown, name: string): StreamConfigInput {
  return STREAM_CONFIG.read(value, name, WHOLE) as StreamConfigInput
}

/** Reads the configuration of a basin in a request; `assertBasinConfig` checks its values. */
export function readBasinConfig(value: unknown, name: string): BasinConfigInput {
  const { streamCipher, ...config } = BASIN_CONFIG.read(value, name, WHOLE) as BasinConfigInput
  return streamCipher == null ? config : { ...config, streamCipher }
}

/**
 * Decodes the header `svc-stream-config`: the configuration of a stream that an append or read creates.
 * Throws 400 `bad_header`, also for unknown members, which would be lost; 422 `invalid` for an invalid value.
 */
export function decodeStreamConfigHeader(text: string): StreamConfigInput {
  let config: StreamConfigInput
  try {
    config = STREAM_CONFIG.read(parseJson(text), 'stream-config', KNOWN_ONLY) as StreamConfigInput
  } catch (cause) {
    if (!(cause instanceof Malformed)) throw cause
    const message = `Invalid stream-config header: ${cause.message}`
    throw new HeadwaterError('bad_header', message, { field: 'stream-config', cause })
  }
  assertStreamConfig(config)
  return config
}

/**
 * Decodes the body of a PATCH (docs/protocol.md "Reconfiguring"): absent members stay as they are, null
 * clears, a value sets. Throws 400 `bad_json` for an invalid form, then 422 `invalid` for an invalid value.
 */
export function decodeStreamReconfiguration(body: Uint8Array): StreamReconfiguration {
  const change = STREAM_CONFIG.read(readJson(body), 'stream reconfiguration', CHANGE)
  assertStreamConfig(change)
  return change
}

export function decodeBasinReconfiguration(body: Uint8Array): BasinReconfiguration {
  const change = BASIN_CONFIG.read(readJson(body), 'basin reconfiguration', CHANGE)
  assertBasinConfig(change)
  return change
}

/** The configuration of a stream in a response. Every member has a value. */
export function streamConfigJson(config: StreamConfig): string {
  return JSON.stringify(STREAM_CONFIG.write(config, null))
}

/**
 * The configuration of a basin in a response: always four members. Unset members of the default for streams
 * are null, but the storage class is the one that applies.
 */
export function basinConfigJson({ defaultStreamConfig, ...config }: BasinConfig): string {
  const { storageClass = SYSTEM_STREAM_CONFIG.storageClass, ...others } = defaultStreamConfig
  return JSON.stringify(
    BASIN_CONFIG.write({ ...config, defaultStreamConfig: { storageClass, ...others } }, null),
  )
}

/** The configuration of a new stream in a request. */
export function streamConfigForm(config: StreamConfigInput): JsonObject {
  return STREAM_CONFIG.write(normalizeStreamConfig(config), undefined)
}

/** The configuration of a new basin in a request. */
export function basinConfigForm(config: BasinConfigInput): JsonObject {
  return BASIN_CONFIG.write(basinConfig(config), undefined)
}

/** The body of PATCH of a stream. */
export function streamChangeText(change: StreamReconfiguration): string {
  return JSON.stringify(STREAM_CONFIG.write(change, undefined))
}

/** The body of PATCH of a basin. */
export function basinChangeText(change: BasinReconfiguration): string {
  return JSON.stringify(BASIN_CONFIG.write(change, undefined))
}

/** Reads the complete configuration of a stream in a response. */
export function streamConfigOf(value: unknown): StreamConfig {
  const { retentionPolicy, timestamping, deleteOnEmpty, ...others } = readStreamConfig(value, 'body')
  if (retentionPolicy === undefined) throw new Malformed('missing member `retention_policy`')
  return {
    ...others,
    retentionPolicy,
    timestamping: { mode: timestamping?.mode ?? 'client-prefer', uncapped: timestamping?.uncapped ?? false },
    deleteOnEmpty: { minAgeSeconds: deleteOnEmpty?.minAgeSeconds ?? 0 },
  }
}

/** Reads the configuration of a basin in a response, which may leave out what is false. */
export function basinConfigOf(value: unknown): BasinConfig {
  const config = readBasinConfig(value, 'body')
  return {
    defaultStreamConfig: config.defaultStreamConfig ?? {},
    streamCipher: config.streamCipher ?? null,
    createStreamOnAppend: config.createStreamOnAppend ?? false,
    createStreamOnRead: config.createStreamOnRead ?? false,
  }
}
