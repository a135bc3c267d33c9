import {
  basinConfig,
  mergeStreamConfig,
  normalizeStreamConfig,
  SYSTEM_STREAM_CONFIG,
} from '../core/config.ts'
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
  integerFrom,
  integerOf,
  Malformed,
  messageForm,
  nested,
  type ObjectForm,
  objectForm,
  objectOf,
  oneOf,
  parseJson,
  type ReadRules,
  readJson,
  type TwoWay,
} from './json.ts'

/** Configurations (docs/protocol.md "Configuration"), at both ends of the protocol. */

type Timestamping = NonNullable<StreamReconfiguration['timestamping']>
type Deletion = NonNullable<StreamReconfiguration['deleteOnEmpty']>

const MODES: readonly TimestampingMode[] = ['client-prefer', 'client-require', 'arrival']
const CLASSES: readonly StorageClass[] = ['standard', 'express']

export const cipherOf = oneOf<Cipher>(['aegis-256', 'aes-256-gcm'])
const ageOf = integerFrom(`1 to ${INTEGER_MAX}`)

/** Exactly one member: `{"age": seconds}` or `{"infinite": {}}`. */
const RETENTION_POLICY: TwoWay<RetentionPolicy> = {
  read(value, name) {
    const [choice, ...others] = Object.entries(objectOf(value, name))
    if (choice === undefined || others.length > 0) {
      throw new Malformed(`\`${name}\` must have exactly one member`, name)
    }
    const [kind, content] = choice
    if (kind === 'age') return { ageSeconds: ageOf(content, 'age') }
    if (kind !== 'infinite') throw new Malformed(`\`${name}\` must be \`age\` or \`infinite\``, name)
    objectOf(content, 'infinite')
    return 'infinite'
  },
  write: (policy) => (policy === 'infinite' ? { infinite: {} } : { age: policy.ageSeconds }),
}

const DELETION = objectForm<Deletion>({
  minAgeSeconds: { form: integerOf, name: 'min_age_secs', nullable: false },
})

const DELETE_ON_EMPTY: TwoWay<Deletion> = {
  ...nested(DELETION),
  read(value, name, rules) {
    const deletion = DELETION.read(value, name, rules)
    // Without its member, it sets the member to its default.
    return rules.nullClears ? deletion : { minAgeSeconds: 0, ...deletion }
  },
}

const TIMESTAMPING = objectForm<Timestamping>({ mode: oneOf(MODES), uncapped: booleanOf })

const STREAM_CONFIG = objectForm<StreamReconfiguration>({
  storageClass: oneOf(CLASSES),
  retentionPolicy: RETENTION_POLICY,
  timestamping: nested(TIMESTAMPING),
  deleteOnEmpty: DELETE_ON_EMPTY,
})

/** Null is not allowed, and in a PATCH it keeps the value. */
const FLAG = { form: booleanOf, nullable: false, clearable: false }

const BASIN_CONFIG = objectForm<BasinReconfiguration>({
  defaultStreamConfig: nested(STREAM_CONFIG),
  streamCipher: cipherOf,
  createStreamOnAppend: FLAG,
  createStreamOnRead: FLAG,
})

const CHANGE: ReadRules = { nullClears: true }
const KNOWN_ONLY: ReadRules = { knownOnly: true }

/** The configuration of a stream in a request; `assertStreamConfig` checks its values. */
export const STREAM_CONFIG_INPUT: ObjectForm<StreamConfigInput> = messageForm({
  read: (value, name) => STREAM_CONFIG.read(value, name) as StreamConfigInput,
  write: (config) => STREAM_CONFIG.write(normalizeStreamConfig(config), undefined),
})

/** The configuration of a basin in a request; `assertBasinConfig` checks its values. */
export const BASIN_CONFIG_INPUT: ObjectForm<BasinConfigInput> = messageForm({
  read: (value, name) => BASIN_CONFIG.read(value, name) as BasinConfigInput,
  write: (config) => BASIN_CONFIG.write(basinConfig(config), undefined),
})

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

export const streamChangeText: (change: StreamReconfiguration) => string = STREAM_CONFIG.requestText

export const basinChangeText: (change: BasinReconfiguration) => string = BASIN_CONFIG.requestText

/** The configuration of a stream in a response. Every member has a value. */
export const streamConfigJson: (config: StreamConfig) => string = STREAM_CONFIG.text

/**
 * The configuration of a basin in a response: always four members. Unset members of the default for streams
 * are null, but the storage class is the one that applies.
 */
export function basinConfigJson({ defaultStreamConfig, ...config }: BasinConfig): string {
  const { storageClass = SYSTEM_STREAM_CONFIG.storageClass, ...others } = defaultStreamConfig
  return BASIN_CONFIG.text({ ...config, defaultStreamConfig: { storageClass, ...others } })
}

/** Reads the complete configuration of a stream in a response. */
export function streamConfigOf(value: unknown): StreamConfig {
  const config = STREAM_CONFIG_INPUT.of(value)
  if (config.retentionPolicy === undefined) throw new Malformed('missing member `retention_policy`')
  return mergeStreamConfig(config, {})
}

/** Reads the configuration of a basin in a response, which may leave out what is false. */
export function basinConfigOf(value: unknown): BasinConfig {
  return basinConfig(BASIN_CONFIG_INPUT.of(value))
}
