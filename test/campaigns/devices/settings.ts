import { Prng } from '../../../src/runtime/prng.ts'
import type { NetworkRates } from './network.ts'

/** What a seed decides before the first step. */
export interface DeviceSettings {
  readonly devices: number
  readonly tabs: number
  readonly rates: NetworkRates
  /** Clocks of devices are wrong by up to this many milliseconds. */
  readonly skewMs: number
  /** Whether the stream is deleted and created again on the server. */
  readonly deletes: boolean
  /** Whether the server trims the stream. */
  readonly trims: boolean
  readonly tailOffset: number | undefined
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
      lost: rate(0.3),
      late: prng.next(),
      responseLost: rate(0.3),
      duplicated: rate(0.3),
      cut: rate(0.3),
      delayMs: prng.pick([5, 50, 2_000]),
      lateMs: prng.pick([100, 10_000, 120_000]),
    },
    skewMs: prng.pick([0, 0, 1_000, 86_400_000]),
    deletes: prng.chance(0.15),
    trims: prng.chance(0.3),
    tailOffset: prng.chance(0.2) ? prng.below(20) : undefined,
  }
}
