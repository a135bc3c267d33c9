import fc from 'fast-check'
import type {
  BasinConfigInput,
  BasinReconfiguration,
  StreamConfigInput,
  StreamReconfiguration,
} from '../../../src/model/config.ts'
import { integer, partial } from './models.ts'

/** Inputs of configurations: members may be absent, groups are not empty. */
export const streamConfig: fc.Arbitrary<StreamConfigInput> = partial({
  storageClass: fc.constantFrom('standard', 'express'),
  retentionPolicy: fc.oneof(
    fc.constant('infinite' as const),
    integer.map((seconds) => ({ ageSeconds: Math.max(seconds, 1) })),
  ),
  timestamping: partial({
    mode: fc.constantFrom('client-prefer', 'client-require', 'arrival'),
    uncapped: fc.boolean(),
  }).filter((group) => Object.keys(group).length > 0),
  deleteOnEmpty: fc.record({ minAgeSeconds: integer }),
})

export const basinConfig: fc.Arbitrary<BasinConfigInput> = partial({
  defaultStreamConfig: streamConfig.filter((config) => Object.keys(config).length > 0),
  streamCipher: fc.constantFrom('aegis-256', 'aes-256-gcm'),
  createStreamOnAppend: fc.boolean(),
  createStreamOnRead: fc.boolean(),
})

/** The JSON of a configuration or of a change, whose members may be null. */
export function streamForm(config: StreamReconfiguration | StreamConfigInput) {
  const { storageClass, retentionPolicy, timestamping, deleteOnEmpty } = config
  return {
    storage_class: storageClass,
    retention_policy:
      typeof retentionPolicy === 'object' && retentionPolicy !== null
        ? { age: retentionPolicy.ageSeconds }
        : retentionPolicy && { infinite: {} },
    timestamping,
    delete_on_empty: deleteOnEmpty && { min_age_secs: deleteOnEmpty.minAgeSeconds },
  }
}

export function basinForm(config: BasinReconfiguration | BasinConfigInput) {
  return {
    default_stream_config: config.defaultStreamConfig && streamForm(config.defaultStreamConfig),
    stream_cipher: config.streamCipher,
    create_stream_on_append: config.createStreamOnAppend,
    create_stream_on_read: config.createStreamOnRead,
  }
}
