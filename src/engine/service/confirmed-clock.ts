import { type ConfirmedTime, confirmTime } from '../../core/clocks.ts'
import { getDocument, putDocument } from '../../storage/documents.ts'
import type { EngineContext } from '../context.ts'

/** How far the stored time may lag behind, in milliseconds. Less than a step. */
const LAG_MS_MAX = 600_000

/** The time by which records are deleted for good: see `core/clocks.ts`. */
export class ConfirmedClock {
  readonly #context: EngineContext
  #time: ConfirmedTime | undefined
  /** The time of the last look. */
  #seenAt: number | undefined
  /** The version of the document that `#time` continues. */
  #version: number | undefined

  constructor(context: EngineContext) {
    this.#context = context
  }

  /** Whether the clock has stepped forward, so that nothing is deleted by it until that is confirmed. */
  get isPaused(): boolean {
    return typeof this.#time?.stepAt === 'number'
  }

  /** Resolves to a time that never exceeds that of the clock. */
  async now(): Promise<number> {
    const { session, clock } = this.#context
    const now = (await session.now?.()) ?? clock.now()
    const stored = await getDocument(session, 'settings', 'confirmed-time')
    const saved = stored?.value
    // Another engine may have looked at its clock meanwhile.
    if (stored?.version !== this.#version) this.#time = saved
    this.#version = stored?.version
    const time = confirmTime(this.#time, now, this.#seenAt)
    this.#time = time
    this.#seenAt = now
    if (saved?.stepAt !== time.stepAt || Math.abs(saved.at - time.at) >= LAG_MS_MAX) {
      // Known here in any case, and reclaiming works without space.
      await session
        .commit([putDocument('settings', 'confirmed-time', time, stored?.version ?? null)])
        .catch(() => {})
    }
    return time.at
  }
}
