import type {
  BasinConfigInput,
  Cipher,
  RetentionPolicy,
  StorageClass,
  StreamConfigInput,
  TimestampingMode,
} from '../model/config.ts'
import { booleanOf, type Decoder, integerOf, nullable, objectOf, oneOf, optional } from './json-members.ts'
import { badJson, type ParsedJson } from './json-values.ts'
import { unlessEmpty, withoutUndefined } from './present-members.ts'

/**
 * Configurations as they are given in JSON (wire-behaviour.md 1.8), by shape only: `checkStreamConfig` and `checkBasinConfig` of the
 * model say what has no meaning. Null and absent are the same, and leave no member behind: an all-null configuration decodes to `{}`.
 */
export const streamConfigOf: Decoder<StreamConfigInput> = (value, name) => {
  const object = objectOf(value, name)
  return withoutUndefined({
    storageClass: nullable(object, 'storage_class', storageClassOf),
    retentionPolicy: nullable(object, 'retention_policy', retentionPolicyOf),
    timestamping: nullable(object, 'timestamping', timestampingOf),
    deleteOnEmpty: nullable(object, 'delete_on_empty', deleteOnEmptyOf),
  })
}

export const basinConfigOf: Decoder<BasinConfigInput> = (value, name) => {
  const object = objectOf(value, name)
  return withoutUndefined({
    defaultStreamConfig: unlessEmpty(nullable(object, 'default_stream_config', streamConfigOf)),
    streamCipher: nullable(object, 'stream_cipher', cipherOf),
    createStreamOnAppend: optional(object, 'create_stream_on_append', booleanOf),
    createStreamOnRead: optional(object, 'create_stream_on_read', booleanOf),
  })
}

export const storageClassOf = oneOf<StorageClass>(['standard', 'express'])
export const modeOf = oneOf<TimestampingMode>(['client-prefer', 'client-require', 'arrival'])
export const cipherOf = oneOf<Cipher>(['aegis-256', 'aes-256-gcm'])

/** `{"age": seconds}` or `{"infinite": {}}`: a choice, so exactly one member. */
export function retentionPolicyOf(value: ParsedJson, name: string): RetentionPolicy {
  const [choice, ...others] = objectOf(value, name).members()
  if (choice === undefined || others.length > 0)
    throw badJson(`\`${name}\` must have exactly one member`, name)
  const [kind, content] = choice
  if (kind === 'age') return { ageSeconds: integerOf(content, 'age') }
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

/** A group without its member sets the member's default, 0, explicitly. */
function deleteOnEmptyOf(value: ParsedJson, name: string): { minAgeSeconds: number } {
  return { minAgeSeconds: optional(objectOf(value, name), 'min_age_secs', integerOf) ?? 0 }
}
