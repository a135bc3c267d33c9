import type { BasinConfig, RetentionPolicy, StreamConfig, StreamConfigInput } from '../model/config.ts'

/** The configuration of a stream: every member has a value (wire-behaviour.md 1.8). */
export function streamConfigJson(config: StreamConfig): string {
  return JSON.stringify(streamConfigForm(config))
}

/** The configuration of a basin: always four members; of the default for streams, what was not set is null. */
export function basinConfigJson(config: BasinConfig): string {
  const defaults = streamConfigForm(config.defaultStreamConfig)
  return JSON.stringify({
    default_stream_config: Object.values(defaults).every((value) => value === null) ? null : defaults,
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
