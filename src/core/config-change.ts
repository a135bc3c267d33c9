import type {
  BasinConfig,
  BasinReconfiguration,
  RetentionPolicy,
  StreamConfig,
  StreamConfigInput,
  StreamReconfiguration,
} from '../model/config.ts'
import { mergeStreamConfig, normalizeStreamConfig } from './config.ts'

/**
 * The configuration of a stream after a change. A cleared leaf returns to the current default of the basin
 * (docs/protocol.md "Reconfiguring").
 */
export function reconfiguredStream(
  current: StreamConfig,
  change: StreamReconfiguration,
  basinDefault: StreamConfigInput,
  defaultRetention?: RetentionPolicy,
): StreamConfig {
  return mergeStreamConfig(patchStreamConfig(current, change), basinDefault, defaultRetention)
}

/**
 * The explicit settings after a change: absent members stay as they are, `null` removes them, a value sets
 * them.
 */
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

/** The configuration of a basin after a change (docs/protocol.md "Reconfiguring"). */
export function reconfiguredBasin(current: BasinConfig, change: BasinReconfiguration): BasinConfig {
  return {
    defaultStreamConfig:
      change.defaultStreamConfig === null
        ? {}
        : patchStreamConfig(current.defaultStreamConfig, change.defaultStreamConfig ?? {}),
    streamCipher: change.streamCipher === undefined ? current.streamCipher : change.streamCipher,
    createStreamOnAppend: change.createStreamOnAppend ?? current.createStreamOnAppend,
    createStreamOnRead: change.createStreamOnRead ?? current.createStreamOnRead,
  }
}

function patch<Value>(current: Value | undefined, change: Value | null | undefined): Value | undefined {
  if (change === undefined) return current
  return change === null ? undefined : change
}

/** An absent group changes none of its leaves; `null` clears all of them. */
function patchGroup<Group extends object, Patched>(
  change: Group | null | undefined,
  patched: (group: Group) => Patched,
): Patched | undefined {
  return change === null ? undefined : patched(change ?? ({} as Group))
}
