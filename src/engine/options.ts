import { DEFAULT_SCOPE, type LocationInfo } from '../model/info.ts'
import { BATCH_METERED_BYTES_MAX, MIB } from '../model/limits.ts'
import { locationNameProblem } from '../model/location-name.ts'
import type { Clock } from '../storage/clock.ts'
import type { Storage } from '../storage/contract.ts'
import type { CipherSuite } from './encryption/cipher-suite.ts'
import { Ciphers } from './encryption/ciphers.ts'
import { idFrom, secureRandom } from './ids.ts'
import { systemClock } from './system-clock.ts'

/** Bounds of what the engine holds in memory. */
export interface EngineLimits {
  /**
   * Metered bytes of all appends that wait to become durable: beyond it appends wait, they do not fail. At least 1 MiB; 128 MiB by
   * default.
   */
  readonly appendInFlightBytes: number
  /**
   * Metered bytes of the appends that wait for that: beyond it appends are refused with 429 `rate_limited` and not made, and a session ends
   * with the first that is refused. At least 1 MiB; 256 MiB by default.
   */
  readonly appendWaitingBytes: number
  /** The same for one append session; 8 MiB by default. */
  readonly sessionInFlightBytes: number
  /**
   * How many appends a live follower may fall behind before it reads from the storage again, without missing or repeating a record;
   * 100 by default.
   */
  readonly followerLagBatches: number
  /** The same in metered bytes; 8 MiB by default. Kept once for all followers of a stream. */
  readonly followerLagBytes: number
  /** How many streams without readers or pending appends are kept at hand; 10,000 by default. */
  readonly cachedStreams: number
  /**
   * How many reads (sessions, long polls, reads of one batch) and append sessions may be open, in this process and over HTTP together: beyond
   * it opening one is refused with 429 `rate_limited`. 50,000 by default.
   */
  readonly openSessions: number
}

const DEFAULT_LIMITS: EngineLimits = {
  appendInFlightBytes: 128 * MIB,
  appendWaitingBytes: 256 * MIB,
  sessionInFlightBytes: 8 * MIB,
  followerLagBatches: 100,
  followerLagBytes: 8 * MIB,
  cachedStreams: 10_000,
  openSessions: 50_000,
}

/** Limits that a whole batch has to fit in. */
const HOLDING_A_BATCH = ['appendInFlightBytes', 'appendWaitingBytes', 'sessionInFlightBytes']

export interface OpenOptions {
  readonly storage: Storage
  /** Where time comes from; the system's by default. `headwater/testing` has a virtual one. */
  readonly clock?: Clock
  /** Where chance comes from, in [0, 1): heartbeat gaps, background jitter, ids of logs. `crypto` and `Math.random` by default. */
  readonly random?: () => number
  readonly limits?: Partial<EngineLimits>
  /**
   * Whether the handles of `hw.basin(name)` create a missing basin or stream on first use, with default configurations. True by default:
   * code that holds the database needs no ceremony. The wire protocol never does this; there the basin's configuration decides.
   */
  readonly autoCreate?: boolean
  /**
   * How long trimmed records stay readable for sessions that were open before the trim, in milliseconds; 10,000 by default. New reads
   * never see them.
   */
  readonly trimGraceMs?: number
  /** The places where basins can be, the first being the default until another is chosen. One, `aws:us-east-1`, by default. */
  readonly locations?: readonly (string | LocationInfo)[]
  /**
   * Ciphers for encrypted streams beside AES-256-GCM, which the runtime has: `[await aegis256()]`, from `headwater/aegis-256`. One that is given
   * comes before the runtime's.
   */
  readonly ciphers?: readonly CipherSuite[]
  /** Told of failures of background work, which is tried again later. By default they are ignored. */
  readonly onBackgroundError?: (error: unknown) => void
}

/** Options with every default filled in. */
export interface Settings {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: () => number
  readonly newId: () => string
  /** See `Head.appendId`. */
  readonly newAppendId: () => string
  readonly limits: EngineLimits
  readonly autoCreate: boolean
  readonly trimGraceMs: number
  readonly locations: readonly LocationInfo[]
  readonly ciphers: Ciphers
  readonly onBackgroundError: (error: unknown) => void
}

export function settingsOf(options: OpenOptions): Settings {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  for (const [name, value] of Object.entries(limits)) {
    const least = HOLDING_A_BATCH.includes(name) ? BATCH_METERED_BYTES_MAX : 1
    if (!(value >= least)) throw new RangeError(`limits.${name} must be at least ${least}, not ${value}`)
  }
  const { random } = options
  const trimGraceMs = options.trimGraceMs ?? 10_000
  if (!(trimGraceMs >= 0)) throw new RangeError(`trimGraceMs must not be negative, not ${trimGraceMs}`)
  const newId = () => idFrom(random ?? secureRandom)
  // Of no seeded source: an engine that is opened with the same seed again must not take appends of an earlier one for its own.
  const engineId = idFrom(secureRandom)
  let appends = 0
  return {
    storage: options.storage,
    clock: wholeMilliseconds(options.clock ?? systemClock),
    random: random ?? Math.random,
    newId,
    newAppendId: () => `${engineId}:${++appends}`,
    limits,
    autoCreate: options.autoCreate ?? true,
    trimGraceMs,
    locations: locationsOf(options.locations ?? [DEFAULT_SCOPE]),
    ciphers: new Ciphers(options.ciphers ?? []),
    onBackgroundError: neverThrowing(options.onBackgroundError),
  }
}

function locationsOf(given: readonly (string | LocationInfo)[]): readonly LocationInfo[] {
  const locations = given.map((one) =>
    typeof one === 'string' ? { name: one, isPrivate: false } : { name: one.name, isPrivate: one.isPrivate },
  )
  if (locations.length === 0) throw new RangeError('locations must not be empty')
  for (const { name } of locations) {
    const problem = locationNameProblem(name)
    if (problem !== undefined) throw new RangeError(`${problem}: ${name}`)
  }
  if (new Set(locations.map(({ name }) => name)).size < locations.length) {
    throw new RangeError('locations must have different names')
  }
  return locations
}

/** Timestamps are whole milliseconds, whatever the clock has. */
function wholeMilliseconds(clock: Clock): Clock {
  return {
    now: () => Math.floor(clock.now()),
    schedule: (delayMs, callback, options) => clock.schedule(delayMs, callback, options),
  }
}

function neverThrowing(callback: ((error: unknown) => void) | undefined): (error: unknown) => void {
  return (error) => {
    try {
      callback?.(error)
    } catch {
      // Whoever is told of failures must not add to them.
    }
  }
}
