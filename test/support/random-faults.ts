import type { FaultyHandler, FaultyStorage, StorageOperation } from '../../adapters/testing/index.ts'
import { Prng } from '../../src/runtime/random.ts'

/** From the shortest to the longest delay, in milliseconds. */
type DelayRange = readonly [from: number, to: number]

interface CallRates {
  /** The probability that a call fails without effect. */
  readonly before?: number
  /** The probability that a call takes effect and its result is lost. */
  readonly after?: number
  readonly kind?: 'io' | 'quota' | 'corrupt'
  /** Of the call or of its result. */
  readonly delay?: DelayRange
  /** The probability that a read returns only its first block. */
  readonly torn?: number
}

/** Probabilities of faults by operation, and of notifications. */
export type StorageRates = { readonly [Operation in StorageOperation]?: CallRates } & {
  readonly notification?: { readonly drop?: number | undefined }
}

/** Probabilities of faults of a request. */
export interface HandlerRates {
  readonly refuse?: number
  readonly drop?: number
  readonly loseResponse?: number
  readonly duplicate?: number
  readonly unavailable?: number
  readonly cut?: number
  /** Of the request or of its response. */
  readonly delay?: DelayRange
}

const CUT_BYTES = [0, 1, 20, 300, 1_000]

/**
 * Plans faults of a storage at random until it is healed. Each operation has a sequence of its own, so that
 * calls of others do not change its faults.
 */
export function storageFaultsAtRandom(storage: FaultyStorage, seed: number, rates: StorageRates): void {
  const { notification, ...operations } = rates
  for (const [name, { before, after, kind = 'io', delay, torn }] of Object.entries(operations)) {
    const operation = name as StorageOperation
    const chance = chanceOf(`${seed}/${operation}`)
    storage.fail(operation, { kind, when: chance.within(before) })
    storage.fail(operation, { kind, after: true, when: chance.within(after) })
    chance.delays(delay, (duration, options) => storage.delay(operation, duration, options))
    if (torn !== undefined) storage.tearReads({ when: chance.within(torn) })
  }
  if (notification?.drop === undefined) return
  storage.dropNotifications({ when: chanceOf(`${seed}/notification`).within(notification.drop) })
}

/** Plans faults of requests at random until the handler is healed. */
export function requestFaultsAtRandom(handler: FaultyHandler, seed: number, rates: HandlerRates): void {
  const chance = chanceOf(`${seed}/request`)
  for (const fault of ['refuse', 'drop', 'loseResponse', 'duplicate'] as const) {
    handler[fault]({ when: chance.within(rates[fault]) })
  }
  handler.respond(503, { when: chance.within(rates.unavailable) })
  for (const bytes of CUT_BYTES)
    handler.cut(bytes, { when: chance.within((rates.cut ?? 0) / CUT_BYTES.length) })
  chance.delays(rates.delay, (duration, options) => handler.delay(duration, options))
}

type PlanDelay = (durationMs: number, options: { after: boolean; when: () => boolean }) => void

/** How many delays of a range there are. */
const DELAYS = 8

function chanceOf(name: string) {
  const prng = new Prng(fnv1a(name))
  /** Of so many selections, one matches each call. */
  const oneOf = (count: number) => {
    let drawn = 0
    return (index: number) => () => {
      if (index === 0) drawn = prng.below(count)
      return drawn === index
    }
  }
  return {
    within:
      (probability = 0) =>
      () =>
        prng.chance(probability),
    delays(range: DelayRange | undefined, plan: PlanDelay): void {
      if (range === undefined) return
      const [from, to] = range
      const drawn = oneOf(DELAYS)
      for (let i = 0; i < DELAYS; i++) {
        plan(Math.round(from + ((to - from) * i) / (DELAYS - 1)), { after: i % 2 === 1, when: drawn(i) })
      }
    },
  }
}

/** Hashes a string; similar strings differ in all 32 bits. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
