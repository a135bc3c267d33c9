import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError, backOffMs, mirrorOutcome } from '../../src/sync/failures.ts'
import type { MirrorState } from '../../src/sync/mirror-state.ts'
import type { WakeUps } from './page-events.ts'
import { pauseUntil } from './pause.ts'

interface DiscoveryContext {
  /** Lists the streams of the server, and takes over what is new. */
  readonly list: () => Promise<void>
  /** The time between two lists, in milliseconds. */
  readonly everyMs: number
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly onState: (state: MirrorState) => void
}

/** The least time from one list to another that a change of a stream causes, in milliseconds. */
const HINTED_MS = 5_000

/** Lists the streams of a server again and again, with pauses that grow while that fails. */
export class Discovery {
  readonly #context: DiscoveryContext
  #wake: ((isAsked: boolean) => void) | undefined
  /** Whether a change of a stream has ended the pause. */
  #isHinted = false

  constructor(context: DiscoveryContext) {
    this.#context = context
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { list, everyMs, clock, random, wakeUps, onState } = this.#context
    const wake = () => this.#wake?.(false)
    const ignoreWakeUps = wakeUps(wake, wake)
    onState({ kind: 'connecting' })
    for (let failures = 0; !signal.aborted; ) {
      let pauseMs: number | undefined = everyMs
      let isWakeable = true
      const startedAt = clock.now()
      this.#isHinted = false
      try {
        await list()
        // Another run may have begun, whose pause this one must not end.
        if (signal.aborted) break
        failures = 0
        onState({ kind: 'live' })
      } catch (thrown) {
        if (signal.aborted) break
        const error = asHeadwaterError(thrown)
        const outcome = mirrorOutcome(error, false)
        isWakeable = outcome === 'retry' && error.retryAfterMs === undefined
        pauseMs = outcome === 'retry' ? backOffMs(++failures, random(), error.retryAfterMs) : undefined
        if (outcome !== 'retry') onState({ kind: 'stopped', reason: outcome, error })
        else onState({ kind: 'offline', error, nextAttemptAt: clock.now() + pauseMs! })
      }
      await this.#pause(pauseMs, signal, isWakeable)
      const elapsedMs = Math.abs(clock.now() - startedAt)
      if (this.#isHinted && elapsedMs < HINTED_MS) await this.#pause(HINTED_MS - elapsedMs, signal, false)
    }
    ignoreWakeUps()
  }

  #pause(ms: number | undefined, signal: AbortSignal, isWakeable: boolean): Promise<void> {
    return pauseUntil(this.#context.clock, ms, signal, (end) => {
      this.#wake = (isAsked) => {
        if (isAsked || isWakeable) end()
      }
      return () => {
        this.#wake = undefined
      }
    })
  }

  /** Lists within 5 seconds, unless the server said when, or the app has to ask for it. */
  check(): void {
    if (this.#wake === undefined) return
    this.#isHinted = true
    this.#wake(false)
  }

  /** Lists at once. */
  retry(): void {
    this.#isHinted = false
    this.#wake?.(true)
  }
}
