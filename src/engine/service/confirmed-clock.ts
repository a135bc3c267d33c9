import { type ConfirmedTime, confirmTime, isSuspicious } from '../../core/clocks.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { StorageSession } from '../../storage/contract.ts'
import { getDocument, putDocument } from '../../storage/documents.ts'

/** How far the stored time may lag behind, in milliseconds. Less than a step. */
const LAG_MS_MAX = 600_000

/** The time by which records are deleted for good: see `core/clocks.ts`. */
export class ConfirmedClock {
  readonly #session: StorageSession
  readonly #clock: Clock
  readonly #onBackgroundError: (error: unknown) => void
  #time: ConfirmedTime | undefined
  /** The time of the last look. */
  #seenAt: number | undefined
  /** The version of the document that `#time` continues. */
  #version: number | undefined

  constructor(session: StorageSession, clock: Clock, onBackgroundError: (error: unknown) => void) {
    this.#session = session
    this.#clock = clock
    this.#onBackgroundError = onBackgroundError
  }

  /** Whether the clock has stepped forward, so that nothing is deleted by it until that is confirmed. */
  get isPaused(): boolean {
    return typeof this.#time?.stepAt === 'number'
  }

  /** Resolves to a time that never exceeds that of the clock. */
  async now(): Promise<number> {
    const session = this.#session
    const now = (await session.now?.()) ?? this.#clock.now()
    const stored = await getDocument(session, 'settings', 'confirmed-time')
    const saved = stored?.value
    const isRunning = this.#time !== undefined
    // Another engine may have looked at its clock meanwhile.
    if (stored?.version !== this.#version) this.#time = saved
    this.#version = stored?.version
    const known = this.#time
    const time = confirmTime(known, now, this.#seenAt)
    this.#seenAt = now
    const { at, stepAt } = time
    this.#time = time
    if (known !== undefined && isSuspicious(known, time, now, isRunning)) {
      this.#onBackgroundError(stepError(known, now))
    }
    if (saved?.stepAt !== stepAt || Math.abs(saved.at - at) >= LAG_MS_MAX) {
      const confirmed = { at, stepAt }
      // Known here in any case, and reclaiming works without space.
      await session
        .commit([putDocument('settings', 'confirmed-time', confirmed, stored?.version ?? null)])
        .catch(() => {})
    }
    return at
  }
}

function stepError({ at }: ConfirmedTime, now: number): HeadwaterError {
  const [from, to] = [at, now].map((time) => new Date(time).toJSON())
  return new HeadwaterError('storage', `the clock stepped from ${from} to ${to}`)
}
