import { Prng } from '../../../src/runtime/random.ts'
import type { StorageRates } from '../../support/random-faults.ts'
import type { NetworkRates } from './network.ts'

/** What a seed decides before the first step. */
export interface DeviceSettings {
  readonly devices: number
  readonly tabs: number
  readonly rates: NetworkRates
  /** Clocks of devices are wrong by up to this many milliseconds. */
  readonly skewMs: number
  /** Whether the stream is deleted on the server, and created again. */
  readonly deletes: boolean
  /** Whether the server trims the stream. */
  readonly trims: boolean
  readonly tailOffset: number | undefined
  /** How long storages take at most, in milliseconds. A crash interrupts what they do. */
  readonly storageDelayMs: number
  /** The number of records between two snapshots of a fold. */
  readonly snapshotEvery: number
  /** What folds do about trimmed history. */
  readonly trimmed: 'fail' | 'skip'
  /** Whether the server supports producers. One that changes, or a proxy, may ignore some of the headers. */
  readonly producers: 'offered' | 'ignored' | 'changing'
}

/** Draws the settings of a seed. */
export function settingsOf(seed: number): DeviceSettings {
  const prng = new Prng(seed ^ 0x5eed)
  const isCalm = prng.chance(0.1)
  const rate = (most: number) => (isCalm ? 0 : prng.next() * most)
  return {
    devices: 1 + prng.below(3),
    tabs: 1 + prng.below(3),
    rates: {
      drop: rate(0.25),
      loseResponse: rate(0.25),
      duplicate: rate(0.25),
      cut: rate(0.25),
      delay: [0, prng.pick([5, 50, 2_000])],
      late: rate(0.2),
      lateMs: prng.pick([100, 10_000, 120_000]),
    },
    skewMs: prng.pick([0, 0, 1_000, 86_400_000]),
    deletes: prng.chance(0.25),
    trims: prng.chance(0.3),
    tailOffset: prng.chance(0.2) ? prng.below(20) : undefined,
    storageDelayMs: prng.pick([0, 0, 5, 300]),
    snapshotEvery: prng.pick([1, 3, 10, 30]),
    trimmed: prng.pick(['fail', 'skip']),
    producers: prng.pick(['offered', 'ignored', 'changing']),
  }
}

/** Delays of a storage: of half of its calls before, and of the other half after they take effect. */
export function delaysOf(mostMs: number): StorageRates {
  if (mostMs === 0) return {}
  const call = { delay: [0, mostMs] as const }
  return { append: call, commit: call, get: call, list: call, head: call, read: call }
}
