import type { BasinReconfiguration, StreamReconfiguration } from '../model/config.ts'
import { checkBasinConfig, checkStreamConfig } from '../model/config-validation.ts'
import { cipherOf, modeOf, retentionPolicyOf, storageClassOf } from './json-config-input.ts'
import { booleanOf, type Decoder, integerOf, nullable, objectOf, threeState } from './json-members.ts'
import { readJson } from './json-reader.ts'
import { withoutUndefined } from './present-members.ts'

/**
 * The bodies of PATCH (wire-behaviour.md 8.5): absent keeps, null clears, a value sets. Throw 400 `bad_json` for a wrong shape, then
 * 422 `invalid` for a value without meaning.
 */
export function decodeStreamReconfiguration(body: Uint8Array): StreamReconfiguration {
  const change = streamChangeOf(readJson(body), 'stream reconfiguration')
  checkStreamConfig(change)
  return change
}

export function decodeBasinReconfiguration(body: Uint8Array): BasinReconfiguration {
  const object = objectOf(readJson(body), 'basin reconfiguration')
  const change = withoutUndefined({
    defaultStreamConfig: threeState(object, 'default_stream_config', streamChangeOf),
    streamCipher: threeState(object, 'stream_cipher', cipherOf),
    // These two have no third state: null keeps them.
    createStreamOnAppend: nullable(object, 'create_stream_on_append', booleanOf),
    createStreamOnRead: nullable(object, 'create_stream_on_read', booleanOf),
  })
  checkBasinConfig(change)
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
