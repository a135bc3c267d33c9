import { invalid } from '../model/errors.ts'
import { BATCH_METERED_BYTES_MAX, MIB } from '../model/limits.ts'
import {
  assertOptions,
  assertSignal,
  hasMethod,
  listOf,
  type MembersOf,
  mistakeIn,
  unchecked,
} from '../model/validation.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import { idFrom, secureRandom } from '../runtime/random.ts'
import type { Storage } from '../storage/contract.ts'
import type { CipherSuite } from './encryption/cipher-suite.ts'
import { Ciphers } from './encryption/ciphers.ts'
import { NO_USAGE, type UsageModule } from './usage.ts'

/** Limits of an engine, for all of its callers together. Sizes are metered bytes. */
export interface EngineLimits {
  /** Bytes of the appends in flight. Further appends wait. At least 1 MiB; 128 MiB by default. */
  readonly appendInFlightBytes: number
  /** Bytes of waiting appends. More reject with `rate_limited`. At least 1 MiB; 256 MiB by default. */
  readonly appendWaitingBytes: number
  /** Bytes in flight of one append session. `submit` waits. At least 1 MiB; 8 MiB by default. */
  readonly sessionInFlightBytes: number
  /** How many appends a live follower may lag behind before it reads from the storage. 100 by default. */
  readonly followerLagBatches: number
  /** The same limit in bytes, which are kept once for all followers of a stream. 8 MiB by default. */
  readonly followerLagBytes: number
  /**
   * Bytes that open reads hold together: what is read ahead, and what is not sent or consumed yet. Beyond it
   * reads wait, and one whose consumer has paused for a second gives its bytes back: it reads them again in
   * this process, and ends with `rate_limited` over HTTP. At least 16 MiB; 256 MiB by default.
   */
  readonly readBufferBytes: number
  /**
   * How many streams stay open while they are idle, at about 2 KiB each. Others are read from the storage
   * again when they are used. 100,000 by default.
   */
  readonly cachedStreams: number
  /** Open reads and append sessions. Further ones reject with `rate_limited`. 50,000 by default. */
  readonly openSessions: number
}

const DEFAULT_LIMITS: Record<keyof EngineLimits, number> = {
  appendInFlightBytes: 128 * MIB,
  appendWaitingBytes: 256 * MIB,
  sessionInFlightBytes: 8 * MIB,
  followerLagBatches: 100,
  followerLagBytes: 8 * MIB,
  readBufferBytes: 256 * MIB,
  cachedStreams: 100_000,
  openSessions: 50_000,
}

/** Limits that must admit the largest batch, or several reads of one. */
const LEAST: Readonly<Record<string, number>> = {
  appendInFlightBytes: BATCH_METERED_BYTES_MAX,
  appendWaitingBytes: BATCH_METERED_BYTES_MAX,
  sessionInFlightBytes: BATCH_METERED_BYTES_MAX,
  readBufferBytes: 16 * MIB,
}

/** Options of `open`. */
export interface OpenOptions {
  /**
   * The storage of the data: `memory()`, `filesystem(directory)`, `indexedDb(name)`, `postgres(options)`,
   * `durableObject(storage)`, or a storage of your own.
   */
  readonly storage: Storage
  /** The source of time; the system's by default. `headwater/testing` has a virtual clock. */
  readonly clock?: Clock | undefined
  /** Random numbers in [0, 1), for ids, heartbeat gaps and jitter. `crypto` and `Math.random` by default. */
  readonly random?: (() => number) | undefined
  /** Bounds of what the engine holds in memory (docs/limits.md). */
  readonly limits?: { readonly [Name in keyof EngineLimits]?: number | undefined } | undefined
  /**
   * Whether appends create a missing basin and stream, with default configurations. True by default. Does not
   * apply over HTTP, where the basin's configuration decides.
   */
  readonly autoCreate?: boolean | undefined
  /**
   * How long trimmed records stay readable for sessions that were open before the trim, and for reads over
   * HTTP, in milliseconds. 10,000 by default.
   */
  readonly trimGraceMs?: number | undefined
  /**
   * Ciphers for encrypted streams beside AES-256-GCM, which the runtime provides: `[await aegis256()]` from
   * `headwater/aegis-256`. A given AES-256-GCM replaces the runtime's.
   */
  readonly ciphers?: readonly CipherSuite[] | undefined
  /**
   * Meters usage: `usageMetrics()` from `headwater/usage`. By default nothing is metered, and metrics calls
   * reject with `unsupported`.
   */
  readonly usage?: UsageModule | undefined
  /** Closes the engine when it aborts; `open` rejects with its reason if it is not done by then. */
  readonly signal?: AbortSignal | undefined
  /** Receives errors of background work, which is retried. By default they are ignored. */
  readonly onBackgroundError?: ((error: unknown) => void) | undefined
}

const OPEN_OPTIONS: MembersOf<OpenOptions> = {
  storage: unchecked,
  clock: hasMethod('now', 'a clock, such as `virtualClock()`'),
  random: 'function',
  limits: Object.fromEntries(Object.keys(DEFAULT_LIMITS).map((name) => [name, 'number'])),
  autoCreate: 'boolean',
  trimGraceMs: 'number',
  ciphers: listOf(hasMethod('seal', 'a cipher, such as `await aegis256()`')),
  usage: hasMethod('open', 'a usage module, such as `usageMetrics()`'),
  signal: assertSignal,
  onBackgroundError: 'function',
}

/** Throws `invalid` for options that are not valid, and says what to pass instead of common mistakes. */
function assertOpenOptions(options: OpenOptions): void {
  const { storage, manifest } = Object(options) as Partial<OpenOptions & Storage>
  if (storage === undefined && manifest !== undefined) {
    throw invalid('open takes options, not a storage: `open({ storage: memory() })`', 'options')
  }
  if (typeof storage?.open !== 'function' || typeof storage.manifest !== 'object') {
    throw invalid(`open needs a storage: \`open({ storage: memory() })\`${mistakeIn(storage)}`, 'storage')
  }
  assertOptions(options, OPEN_OPTIONS)
}

export interface EngineSettings {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: () => number
  readonly newId: () => string
  /** See `Head.appendId`. */
  readonly newAppendId: () => string
  readonly limits: EngineLimits
  readonly autoCreate: boolean
  readonly trimGraceMs: number
  readonly ciphers: Ciphers
  readonly usage: UsageModule
  readonly onBackgroundError: (error: unknown) => void
}

export function engineSettings(options: OpenOptions): EngineSettings {
  assertOpenOptions(options)
  const limits = { ...DEFAULT_LIMITS }
  for (const [name, value] of Object.entries(options.limits ?? {})) {
    if (value === undefined) continue
    const least = LEAST[name] ?? 1
    const field = `limits.${name}`
    if (!(value >= least)) throw invalid(`${field} must be at least ${least}, not ${value}`, field)
    limits[name as keyof EngineLimits] = value
  }
  const { random } = options
  const trimGraceMs = options.trimGraceMs ?? 10_000
  if (!(trimGraceMs >= 0)) throw invalid(`trimGraceMs must be at least 0, not ${trimGraceMs}`, 'trimGraceMs')
  const newId = () => idFrom(random ?? secureRandom)
  // Never from a seeded source: engines opened with the same seed must not mistake each other's appends for
  // their own.
  let appendIdPrefix: string | undefined
  let appends = 0
  return {
    storage: options.storage,
    clock: options.clock === undefined ? systemClock : wholeMilliseconds(options.clock),
    random: random ?? Math.random,
    newId,
    newAppendId: () => {
      // Not before the first append: workerd has no random numbers outside of requests.
      appendIdPrefix ??= `${idFrom(secureRandom)}:`
      return `${appendIdPrefix}${++appends}`
    },
    limits,
    autoCreate: options.autoCreate ?? true,
    trimGraceMs,
    ciphers: new Ciphers(options.ciphers ?? []),
    usage: options.usage ?? NO_USAGE,
    onBackgroundError: neverThrowing(options.onBackgroundError),
  }
}

/** Timestamps are whole milliseconds, whatever the clock's resolution. */
function wholeMilliseconds(clock: Clock): Clock {
  return {
    isVirtual: clock.isVirtual,
    now: () => Math.floor(clock.now()),
    schedule: (delayMs, callback, options) => clock.schedule(delayMs, callback, options),
  }
}

function neverThrowing(callback: ((error: unknown) => void) | undefined): (error: unknown) => void {
  return (error) => {
    try {
      callback?.(error)
    } catch {
      // An error handler must not cause further errors.
    }
  }
}
