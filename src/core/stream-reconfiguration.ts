import type { StreamConfig, StreamConfigInput, StreamReconfiguration } from '../model/config.ts'
import { mergeStreamConfig } from './stream-config.ts'

/** A stream's configuration after a change; a cleared leaf returns to the basin's default of now (wire-behaviour.md 8.5). */
export function reconfigureStream(
  current: StreamConfig,
  change: StreamReconfiguration,
  basinDefault: StreamConfigInput,
): StreamConfig {
  return mergeStreamConfig(patchStreamConfig(current, change), basinDefault)
}

/** What is set explicitly after a change: absent keeps, `null` unsets, a value sets. */
export function patchStreamConfig(
  current: StreamConfigInput,
  change: StreamReconfiguration,
): StreamConfigInput {
  return normalizeStreamConfig({
    storageClass: patch(current.storageClass, change.storageClass),
    retentionPolicy: patch(current.retentionPolicy, change.retentionPolicy),
    timestamping: patchGroup(change.timestamping, (group) => ({
      mode: patch(current.timestamping?.mode, group.mode),
      uncapped: patch(current.timestamping?.uncapped, group.uncapped),
    })),
    deleteOnEmpty: patchGroup(change.deleteOnEmpty, (group) => ({
      minAgeSeconds: patch(current.deleteOnEmpty?.minAgeSeconds, group.minAgeSeconds),
    })),
  })
}

/** The same configuration without members that are not set (or null, from untyped code) and in one member order, so that equal ones serialise alike. */
export function normalizeStreamConfig(config: StreamConfigInput): StreamConfigInput {
  const { storageClass, retentionPolicy } = config
  const mode = config.timestamping?.mode
  const uncapped = config.timestamping?.uncapped
  const minAgeSeconds = config.deleteOnEmpty?.minAgeSeconds
  return {
    ...(storageClass != null && { storageClass }),
    ...(retentionPolicy != null && {
      retentionPolicy:
        retentionPolicy === 'infinite' ? retentionPolicy : { ageSeconds: retentionPolicy.ageSeconds },
    }),
    ...((mode != null || uncapped != null) && {
      timestamping: { ...(mode != null && { mode }), ...(uncapped != null && { uncapped }) },
    }),
    ...(minAgeSeconds != null && { deleteOnEmpty: { minAgeSeconds } }),
  }
}

function patch<Value>(current: Value | undefined, change: Value | null | undefined): Value | undefined {
  if (change === undefined) return current
  return change === null ? undefined : change
}

/** An absent group changes none of its leaves; a `null` group clears them all. */
function patchGroup<Group extends object, Patched>(
  change: Group | null | undefined,
  patched: (group: Group) => Patched,
): Patched | undefined {
  return change === null ? undefined : patched(change ?? ({} as Group))
}
