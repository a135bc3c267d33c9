import fc from 'fast-check'
import type { BasinReconfiguration, StreamReconfiguration } from '../../../../src/model/config.ts'
import { decodeBasinReconfiguration, decodeStreamReconfiguration } from '../../../../src/wire/json-config.ts'
import { withoutUndefined } from '../../../../src/wire/json-members.ts'
import { CONFIG_WORDS } from '../configs.ts'
import { integer } from '../models.ts'
import { jsonBody } from './json-body.ts'

function threeState<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> {
  return fc.option(value, { nil: null })
}

const streamChange = fc.record(
  {
    storageClass: threeState(fc.constantFrom('standard', 'express')),
    retentionPolicy: threeState(
      fc.oneof(
        fc.constant('infinite' as const),
        integer.map((seconds) => ({ ageSeconds: Math.max(seconds, 1) })),
      ),
    ),
    timestamping: threeState(
      fc.record(
        {
          mode: threeState(fc.constantFrom('client-prefer', 'client-require', 'arrival')),
          uncapped: threeState(fc.boolean()),
        },
        { requiredKeys: [] },
      ),
    ),
    deleteOnEmpty: threeState(fc.record({ minAgeSeconds: threeState(integer) }, { requiredKeys: [] })),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<StreamReconfiguration>

const basinChange = fc.record(
  {
    defaultStreamConfig: threeState(streamChange),
    streamCipher: threeState(fc.constantFrom('aegis-256', 'aes-256-gcm')),
    createStreamOnAppend: fc.boolean(),
    createStreamOnRead: fc.boolean(),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<BasinReconfiguration>

/** Absent members stay absent, and null stays null. */
function streamForm({ storageClass, retentionPolicy, timestamping, deleteOnEmpty }: StreamReconfiguration) {
  const isAge = typeof retentionPolicy === 'object' && retentionPolicy !== null
  return withoutUndefined({
    storage_class: storageClass,
    retention_policy: isAge
      ? { age: retentionPolicy.ageSeconds }
      : retentionPolicy === 'infinite'
        ? { infinite: {} }
        : retentionPolicy,
    timestamping,
    delete_on_empty: deleteOnEmpty && withoutUndefined({ min_age_secs: deleteOnEmpty.minAgeSeconds }),
  })
}

export const reconfigureStream = jsonBody({
  name: 'reconfigure-stream',
  models: streamChange,
  form: streamForm,
  decode: decodeStreamReconfiguration,
  words: CONFIG_WORDS,
})

export const reconfigureBasin = jsonBody({
  name: 'reconfigure-basin',
  models: basinChange,
  form: (change: BasinReconfiguration) =>
    withoutUndefined({
      default_stream_config: change.defaultStreamConfig && streamForm(change.defaultStreamConfig),
      stream_cipher: change.streamCipher,
      create_stream_on_append: change.createStreamOnAppend,
      create_stream_on_read: change.createStreamOnRead,
    }),
  decode: decodeBasinReconfiguration,
  words: CONFIG_WORDS,
})
