import { heartbeatGapMs } from '../../core/read-plan.ts'
import type { Clock } from '../../runtime/clock.ts'

export interface WaitTimerOptions {
  readonly clock: Clock
  /** Spreads the heartbeats; in [0, 1). */
  readonly random: () => number
  /** Whether there are heartbeats while the read waits: all, or the `first` at the tail. */
  readonly heartbeats: boolean | 'first'
}

/**
 * When something is due for a read that waits at the tail: its next heartbeat, and the end of its wait
 * (docs/protocol.md "Waiting"). The wait ends `waitMs` after the last delivered batch or, if none was
 * delivered, after first reaching the tail. Heartbeats do not postpone it. It may be up to twice as late if
 * the clock is set back after a delivery.
 */
export class WaitTimer {
  readonly #options: WaitTimerOptions
  /** How long to wait for the next record, in milliseconds: 0 is not at all, Infinity forever. */
  readonly #waitMs: number
  #deadline: number | undefined
  /** The time between a delivery and the next heartbeat, in milliseconds; chosen again for each heartbeat. */
  #heartbeatGapMs = Number.POSITIVE_INFINITY
  #nextHeartbeatAt = Number.POSITIVE_INFINITY
  #timer: { readonly at: number; readonly cancel: () => void } | undefined
  /** Whether there was a delivery since the timer was set. */
  #isPostponed = false
  readonly #onDue: () => void

  /** @param onDue Called when something may be due, if that was scheduled. */
  constructor(waitMs: number, options: WaitTimerOptions, onDue: () => void) {
    this.#waitMs = waitMs
    this.#options = options
    this.#onDue = onDue
  }

  /** Begins the wait at the tail, unless it has begun before. Returns false if it is over already. */
  begin(): boolean {
    const now = this.#options.clock.now()
    this.#deadline ??= now + this.#waitMs
    return now < this.#deadline
  }

  due(): 'end' | 'heartbeat' | undefined {
    const now = this.#options.clock.now()
    // A clock that was set back delays nothing for longer than it takes.
    this.#deadline = Math.min(this.#deadline!, now + this.#waitMs)
    this.#nextHeartbeatAt = Math.min(this.#nextHeartbeatAt, now + this.#heartbeatGapMs)
    if (now >= this.#deadline) return 'end'
    return now >= this.#nextHeartbeatAt ? 'heartbeat' : undefined
  }

  /** Returns the time of a heartbeat that is sent now; undefined for a read without heartbeats. */
  heartbeat(): number | undefined {
    const { heartbeats, clock, random } = this.#options
    if (!heartbeats) return undefined
    const now = clock.now()
    if (heartbeats === true) this.#heartbeatGapMs = heartbeatGapMs(random())
    this.#nextHeartbeatAt = now + this.#heartbeatGapMs
    return now
  }

  /** Makes a heartbeat due at once, unless the read has none. */
  beat(): void {
    if (this.#options.heartbeats) this.#nextHeartbeatAt = Number.NEGATIVE_INFINITY
  }

  /** Postpones what is due, after the delivery of a batch. */
  postpone(): void {
    if (this.#waitMs === 0) return
    const now = this.#options.clock.now()
    this.#deadline = now + this.#waitMs
    this.#nextHeartbeatAt = now + this.#heartbeatGapMs
    this.#isPostponed = true
  }

  /** Calls `onDue` once, when something may be due. */
  schedule(): void {
    const at = Math.min(this.#deadline!, this.#nextHeartbeatAt)
    // A timer that is early is kept: deliveries postpone what is due, and it is set again when it fires.
    if (at >= (this.#timer?.at ?? Number.POSITIVE_INFINITY)) return
    this.#timer?.cancel()
    const { clock } = this.#options
    this.#isPostponed = false
    const cancel = clock.schedule(at - clock.now(), () => {
      this.#timer = undefined
      // If the clock was set back meanwhile, nothing is due later for that; unless a delivery has postponed
      // what is due, perhaps by the clock as it is now.
      const early = this.#isPostponed ? 0 : Math.max(at - clock.now(), 0)
      this.#deadline! -= early
      this.#nextHeartbeatAt -= early
      this.#onDue()
    })
    this.#timer = { at, cancel }
  }

  cancel(): void {
    this.#timer?.cancel()
  }
}
