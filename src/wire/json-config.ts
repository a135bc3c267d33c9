import { SYSTEM_STREAM_CONFIG } from '../core/config.ts'
import { assertBasinConfig } from '../model/basin-config.ts'
import type {
  BasinConfig,
  BasinConfigInput,
  BasinReconfiguration,
  Cipher,
  RetentionPolicy,
  StorageClass,
  StreamConfig,
  StreamConfigInput,
  StreamReconfiguration,
  TimestampingMode,
} from '../model/config.ts'
import { assertStreamConfig } from '../model/config.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import {
  booleanOf,
  type Decoder,
  enumOf,
  integerOf,
  nullable,
  objectOf,
  optional,
  threeState,
  unlessEmpty,
  withoutUndefined,
} from './json-members.ts'
import { badJson, JsonObject, type ParsedJson, readJson } from './json-reader.ts'

/**
 * Decodes the form of a configuration (docs/protocol.md "Configuration"); `assertStreamConfig` and
 * `assertBasinConfig` check its values. Null and absent members are the same, so a configuration of nulls
 * decodes to `{}`.
 */
export const decodeStreamConfig: Decoder<StreamConfigInput> = (value, name) => {
  const object = objectOf(value, name)
  return withoutUndefined({
    storageClass: nullable(object, 'storage_class', storageClassOf),
    retentionPolicy: nullable(object, 'retention_policy', retentionPolicyOf),
    timestamping: nullable(object, 'timestamping', timestampingOf),
    deleteOnEmpty: nullable(object, 'delete_on_empty', deleteOnEmptyOf),
  })
}

/** The members of a stream configuration and of its groups. */
const STREAM_CONFIG_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  '': ['storage_class', 'retention_policy', 'timestamping', 'delete_on_empty'],
  timestamping: ['mode', 'uncapped'],
  delete_on_empty: ['min_age_secs'],
}

/**
 * Throws 400 `bad_json` for a member that no stream configuration has. `group` is the member with `value`.
 */
export function assertKnownMembers(value: ParsedJson, group = ''): void {
  const known = STREAM_CONFIG_MEMBERS[group]
  if (known === undefined || !(value instanceof JsonObject)) return
  for (const [name, content] of value.members()) {
    if (!known.includes(name)) throw badJson(`unknown member \`${name.slice(0, NAME_LENGTH_SHOWN)}\``, name)
    assertKnownMembers(content, name)
  }
}

const NAME_LENGTH_SHOWN = 40

export const decodeBasinConfig: Decoder<BasinConfigInput> = (value, name) => {
  const object = objectOf(value, name)
  return withoutUndefined({
    defaultStreamConfig: unlessEmpty(nullable(object, 'default_stream_config', decodeStreamConfig)),
    streamCipher: nullable(object, 'stream_cipher', cipherOf),
    createStreamOnAppend: optional(object, 'create_stream_on_append', booleanOf),
    createStreamOnRead: optional(object, 'create_stream_on_read', booleanOf),
  })
}

const storageClassOf = enumOf<StorageClass>(['standard', 'express'])
const modeOf = enumOf<TimestampingMode>(['client-prefer', 'client-require', 'arrival'])
export const cipherOf = enumOf<Cipher>(['aegis-256', 'aes-256-gcm'])

/** Exactly one member: `{"age": seconds}` or `{"infinite": {}}`. */
function retentionPolicyOf(value: ParsedJson, name: string): RetentionPolicy {
  const [choice, ...others] = objectOf(value, name).members()
  if (choice === undefined || others.length > 0)
    throw badJson(`\`${name}\` must have exactly one member`, name)
  const [kind, content] = choice
  if (kind === 'age') return { ageSeconds: integerOf(content, 'age', `1 to ${INTEGER_MAX}`) }
  if (kind !== 'infinite') throw badJson(`\`${name}\` must be \`age\` or \`infinite\``, name)
  objectOf(content, 'infinite')
  return 'infinite'
}

function timestampingOf(value: ParsedJson, name: string): StreamConfigInput['timestamping'] {
  const object = objectOf(value, name)
  return unlessEmpty(
    withoutUndefined({
      mode: nullable(object, 'mode', modeOf),
      uncapped: nullable(object, 'uncapped', booleanOf),
    }),
  )
}

/** A group without its member sets the member to its default, 0. */
function deleteOnEmptyOf(value: ParsedJson, name: string): { minAgeSeconds: number } {
  return { minAgeSeconds: optional(objectOf(value, name), 'min_age_secs', integerOf) ?? 0 }
}

/**
 * Decodes the body of a PATCH (docs/protocol.md "Reconfiguring"): absent members stay as they are, null
 * clears, a value sets. Throws 400 `bad_json` for an invalid form, then 422 `invalid` for an invalid value.
 */
export function decodeStreamReconfiguration(body: Uint8Array): StreamReconfiguration {
  const change = streamChangeOf(readJson(body), 'stream reconfiguration')
  assertStreamConfig(change)
  return change
}

export function decodeBasinReconfiguration(body: Uint8Array): BasinReconfiguration {
  const object = objectOf(readJson(body), 'basin reconfiguration')
  const change = withoutUndefined({
    defaultStreamConfig: threeState(object, 'default_stream_config', streamChangeOf),
    streamCipher: threeState(object, 'stream_cipher', cipherOf),
    // These two cannot be cleared: null keeps them.
    createStreamOnAppend: nullable(object, 'create_stream_on_append', booleanOf),
    createStreamOnRead: nullable(object, 'create_stream_on_read', booleanOf),
  })
  assertBasinConfig(change)
  return change
}

const streamChangeOf: Decoder<StreamReconfiguration> = (value, name) => {
  const object = objectOf(value, name)
  return withoutUndefined({
    storageClass: threeState(object, 'storage_class', storageClassOf),
    retentionPolicy: threeState(object, 'retention_policy', retentionPolicyOf),
    timestamping: threeState(object, 'timestamping', timestampingChangeOf),
    deleteOnEmpty: threeState(object, 'delete_on_empty', deleteOnEmptyChangeOf),
  })
}

const timestampingChangeOf: Decoder<NonNullable<StreamReconfiguration['timestamping']>> = (value, name) => {
  const object = objectOf(value, name)
  return withoutUndefined({
    mode: threeState(object, 'mode', modeOf),
    uncapped: threeState(object, 'uncapped', booleanOf),
  })
}

const deleteOnEmptyChangeOf: Decoder<NonNullable<StreamReconfiguration['deleteOnEmpty']>> = (value, name) =>
  withoutUndefined({ minAgeSeconds: threeState(objectOf(value, name), 'min_age_secs', integerOf) })

/** The configuration of a stream. Every member has a value (docs/protocol.md "Configuration"). */
export function streamConfigJson(config: StreamConfig): string {
  return JSON.stringify(streamConfigForm(config))
}

/**
 * The configuration of a basin: always four members. Unset members of the default for streams are null, but
 * the storage class is the one that applies.
 */
export function basinConfigJson(config: BasinConfig): string {
  const { storageClass = SYSTEM_STREAM_CONFIG.storageClass, ...others } = config.defaultStreamConfig
  return JSON.stringify({
    default_stream_config: streamConfigForm({ storageClass, ...others }),
    stream_cipher: config.streamCipher,
    create_stream_on_append: config.createStreamOnAppend,
    create_stream_on_read: config.createStreamOnRead,
  })
}

function streamConfigForm({ storageClass, retentionPolicy, timestamping, deleteOnEmpty }: StreamConfigInput) {
  const { mode, uncapped } = timestamping ?? {}
  const minAgeSeconds = deleteOnEmpty?.minAgeSeconds
  return {
    storage_class: storageClass ?? null,
    retention_policy: retentionPolicy === undefined ? null : retentionPolicyForm(retentionPolicy),
    timestamping:
      mode === undefined && uncapped === undefined
        ? null
        : { mode: mode ?? null, uncapped: uncapped ?? null },
    delete_on_empty: minAgeSeconds === undefined ? null : { min_age_secs: minAgeSeconds },
  }
}

function retentionPolicyForm(policy: RetentionPolicy): object {
  return policy === 'infinite' ? { infinite: {} } : { age: policy.ageSeconds }
}
