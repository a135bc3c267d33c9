import type {
  BasinConfig,
  BasinConfigInput,
  BasinReconfiguration,
  RetentionPolicy,
  StreamConfig,
  StreamConfigInput,
  StreamReconfiguration,
} from '../model/config.ts'

/** The protocol's defaults of a stream's settings (docs/protocol.md "Configuration"). Callers receive it. */
export const SYSTEM_STREAM_CONFIG: StreamConfig = Object.freeze({
  storageClass: 'express',
  retentionPolicy: Object.freeze({ ageSeconds: 604_800 }),
  timestamping: Object.freeze({ mode: 'client-prefer', uncapped: false }),
  deleteOnEmpty: Object.freeze({ minAgeSeconds: 0 }),
})

/**
 * Completes a stream's configuration: each leaf is the stream's own value, or the basin's default, or the
 * protocol's, except that the creating side may have another default for the retention.
 */
export function mergeStreamConfig(
  own: StreamConfigInput,
  basinDefault: StreamConfigInput,
  defaultRetention: RetentionPolicy = SYSTEM_STREAM_CONFIG.retentionPolicy,
): StreamConfig {
  const first = <Leaf>(leafOf: (config: StreamConfigInput) => Leaf) =>
    (leafOf(own) ?? leafOf(basinDefault) ?? leafOf(SYSTEM_STREAM_CONFIG)) as NonNullable<Leaf>
  return {
    storageClass: first((config) => config.storageClass),
    retentionPolicy: own.retentionPolicy ?? basinDefault.retentionPolicy ?? defaultRetention,
    timestamping: {
      mode: first((config) => config.timestamping?.mode),
      uncapped: first((config) => config.timestamping?.uncapped),
    },
    deleteOnEmpty: { minAgeSeconds: first((config) => config.deleteOnEmpty?.minAgeSeconds) },
  }
}

/**
 * Removes members that are not set, or null in untyped code, and orders the others, so that equal
 * configurations serialize to the same JSON.
 */
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

/** The defaults of a basin for its streams: what was set explicitly, and the storage class. */
function streamDefaults(set: StreamConfigInput): StreamConfigInput {
  const { storageClass = SYSTEM_STREAM_CONFIG.storageClass } = normalizeStreamConfig(set)
  return normalizeStreamConfig({ ...set, storageClass })
}

/** Completes the configuration of a new basin with defaults (docs/protocol.md "Ensuring"). */
export function basinConfig(input: BasinConfigInput): BasinConfig {
  return {
    defaultStreamConfig: streamDefaults(input.defaultStreamConfig ?? {}),
    streamCipher: input.streamCipher ?? null,
    createStreamOnAppend: input.createStreamOnAppend ?? false,
    createStreamOnRead: input.createStreamOnRead ?? false,
  }
}

/**
 * The configuration of a basin with the default retention of the side that creates or changes it, which other
 * sides need not share. A basin that had none keeps having none, so that writing what was read changes
 * nothing.
 */
export function withDefaultRetention(
  config: BasinConfig,
  retentionPolicy: RetentionPolicy | undefined,
  current?: BasinConfig,
): BasinConfig {
  const { defaultStreamConfig } = config
  const hadNone = current !== undefined && current.defaultStreamConfig.retentionPolicy === undefined
  if (retentionPolicy === undefined || hadNone || defaultStreamConfig.retentionPolicy !== undefined)
    return config
  return {
    ...config,
    defaultStreamConfig: normalizeStreamConfig({ ...defaultStreamConfig, retentionPolicy }),
  }
}

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

/** The explicit settings after a change: `null` removes a member, a value sets it, others stay. */
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
    defaultStreamConfig: streamDefaults(
      change.defaultStreamConfig === null
        ? {}
        : patchStreamConfig(current.defaultStreamConfig, change.defaultStreamConfig ?? {}),
    ),
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
