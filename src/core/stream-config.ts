import type { StreamConfig, StreamConfigInput } from '../model/config.ts'

/** wire-behaviour.md 8.4. */
export const SYSTEM_STREAM_CONFIG: StreamConfig = {
  storageClass: 'express',
  retentionPolicy: { ageSeconds: 604_800 },
  timestamping: { mode: 'client-prefer', uncapped: false },
  deleteOnEmpty: { minAgeSeconds: 0 },
}

/** The whole configuration: leaf by leaf the stream's own value, else the basin's default, else the system's. */
export function mergeStreamConfig(own: StreamConfigInput, basinDefault: StreamConfigInput): StreamConfig {
  const system = SYSTEM_STREAM_CONFIG
  return {
    storageClass: own.storageClass ?? basinDefault.storageClass ?? system.storageClass,
    retentionPolicy: own.retentionPolicy ?? basinDefault.retentionPolicy ?? system.retentionPolicy,
    timestamping: {
      mode: own.timestamping?.mode ?? basinDefault.timestamping?.mode ?? system.timestamping.mode,
      uncapped:
        own.timestamping?.uncapped ?? basinDefault.timestamping?.uncapped ?? system.timestamping.uncapped,
    },
    deleteOnEmpty: {
      minAgeSeconds:
        own.deleteOnEmpty?.minAgeSeconds ??
        basinDefault.deleteOnEmpty?.minAgeSeconds ??
        system.deleteOnEmpty.minAgeSeconds,
    },
  }
}
