import type { EngineLimits } from '../../../src/engine/options.ts'
import type { StreamConfigInput } from '../../../src/model/config.ts'
import type { Prng } from '../../../src/runtime/random.ts'
import type { StorageRates } from '../../support/random-faults.ts'

/** The choices of a seed before the first step. */
export interface Settings {
  /**
   * If shared, several engines have the storage open, like tabs; otherwise one owns it, like a process a
   * directory.
   */
  readonly engines: number
  readonly isShared: boolean
  readonly notifications: 'reliable' | 'hint' | 'none'
  readonly streams: readonly string[]
  readonly autoCreate: boolean
  readonly config: StreamConfigInput
  readonly limits: Partial<EngineLimits>
  readonly trimGraceMs: number
  readonly writers: number
  readonly sessionWriters: number
  readonly producers: number
  readonly followers: number
  readonly readers: number
  readonly controllers: number
  /** Whether controllers delete streams and create them again. */
  readonly deletes: boolean
  /** How often storages fail, engines crash and connections are lost; 0 for never. */
  readonly faultRate: number
  /** The probability that the result of a call is held as well. */
  readonly holdAnswers: number
  /** The amount of work per released storage call: much work leaves many calls in flight. */
  readonly workPerCall: number
  /** The largest difference between the clocks of engines, in milliseconds. */
  readonly skewMs: number
  /** Whether clocks are set while they are in use. */
  readonly clockSteps: boolean
  /** Whether clocks leap by years, and back. */
  readonly clockLeaps: boolean
  /** Whether the storage has a clock that the engines share, whatever their own clocks show. */
  readonly hasSharedClock: boolean
  /** Whether some bodies are large enough to reach limits in bytes. */
  readonly largeBodies: boolean
  /** Writers with the batches of idempotent producers. */
  readonly idempotentWriters: number
  /** Whether some appends have a `streamSeq`. */
  readonly streamSeqs: boolean
  /** Whether streams are closed. */
  readonly closes: boolean
  /** The names of streams that are created with records, as forks, with metadata or an expiry. */
  readonly created: readonly string[]
}

export function settingsOf(prng: Prng): Settings {
  const isShared = prng.chance(0.65)
  const skews = prng.chance(0.3)
  const settings = {
    engines: isShared ? 1 + prng.below(3) : 1,
    isShared,
    notifications: isShared ? prng.pick(['reliable', 'hint', 'hint', 'none'] as const) : 'none',
    streams: ['one', 'two', 'three'].slice(0, prng.pick([1, 1, 2, 3])),
    autoCreate: prng.chance(0.7),
    config: drawConfig(prng),
    limits: {
      followerLagBatches: prng.pick([1, 2, 5, 100]),
      followerLagBytes: prng.pick([1, 200, 8_388_608]),
      cachedStreams: prng.pick([1, 2, 20, 10_000]),
      sessionInFlightBytes: prng.pick([1_048_576, 8_388_608]),
      appendInFlightBytes: prng.pick([1_048_576, 8_388_608]),
    },
    trimGraceMs: prng.pick([0, 50, 1_000, 10_000]),
    writers: 1 + prng.below(4),
    sessionWriters: prng.below(3),
    producers: prng.below(2),
    followers: 1 + prng.below(4),
    readers: 1 + prng.below(2),
    controllers: prng.chance(0.6) ? 1 : 0,
    deletes: prng.chance(0.5),
    faultRate: prng.pick([0, 0.01, 0.03, 0.1]),
    holdAnswers: prng.pick([0, 0.3, 0.8]),
    workPerCall: prng.pick([0.2, 0.5, 1]),
    skewMs: skews ? prng.pick([20, 2_000, 60_000]) : 0,
    clockSteps: prng.chance(0.3),
    largeBodies: prng.chance(0.1),
    clockLeaps: prng.chance(0.2),
  }
  const hasSharedClock = isShared && prng.chance(0.3)
  const skewMs = hasSharedClock ? prng.pick([0, 2_000, 7_200_000]) : settings.skewMs
  return {
    ...settings,
    hasSharedClock,
    skewMs,
    idempotentWriters: prng.pick([0, 0, 1, 2]),
    streamSeqs: prng.chance(0.3),
    closes: prng.chance(0.3),
    created: ['four', 'five', 'six'].slice(0, prng.pick([0, 0, 1, 2, 3])),
  }
}

export function drawConfig(prng: Prng): StreamConfigInput {
  const mode = prng.pick([undefined, 'client-prefer', 'client-require', 'arrival'] as const)
  return {
    ...(mode && { timestamping: { mode, uncapped: prng.chance(0.3) } }),
    ...(prng.chance(0.3) && { retentionPolicy: { ageSeconds: prng.pick([1, 5, 30, 120]) } }),
    ...(prng.chance(0.2) && { deleteOnEmpty: { minAgeSeconds: prng.pick([1, 10, 60]) } }),
  }
}

/** Faults of the calls of one engine. */
export function ratesOf({ faultRate, notifications }: Settings): StorageRates {
  const call = { before: faultRate, after: faultRate / 2 }
  return {
    append: { before: faultRate, after: faultRate },
    commit: call,
    head: call,
    get: call,
    list: call,
    reclaim: call,
    measure: call,
    read: { ...call, torn: 5 * faultRate },
    notification: { drop: notifications === 'hint' ? 3 * faultRate : undefined },
  }
}
