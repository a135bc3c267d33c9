import type { Basin } from '../../src/api/basin.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { syncedNameProblem } from '../../src/sync/basin.ts'
import { asHeadwaterError, backOffMs } from '../../src/sync/failures.ts'
import { type MirrorState, mirrorOutcome } from '../../src/sync/mirror.ts'
import { pauseUntil, type WakeUps } from './pause.ts'

/** The most streams of a server that are listed. */
const STREAMS_MAX = 10_000

interface ListerContext {
  readonly remote: Basin
  readonly prefix: string
  /** The time between two lists, in milliseconds. */
  readonly everyMs: number
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly onNames: (names: readonly string[]) => void
  readonly onState: (state: MirrorState) => void
}

/** Lists the streams of the server again and again, with pauses that grow while that fails. */
export class BasinLister {
  readonly #context: ListerContext
  readonly #signal: AbortSignal
  #listAgain = () => {}

  /** Lists until the signal aborts. */
  constructor(context: ListerContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
    void this.#run()
  }

  /** Lists at once. */
  retry(): void {
    this.#listAgain()
  }

  async #run(): Promise<void> {
    const { everyMs, clock, random, wakeUps, onNames, onState } = this.#context
    const signal = this.#signal
    for (let failures = 0; !signal.aborted; ) {
      let pauseMs: number | undefined = everyMs
      let wakes: WakeUps | undefined
      try {
        onNames(await this.#names())
        failures = 0
        onState({ kind: 'live' })
      } catch (thrown) {
        if (signal.aborted) return
        const error = asHeadwaterError(thrown)
        const reason = mirrorOutcome(error, false)
        if (reason === 'retry') {
          pauseMs = backOffMs(++failures, random(), error.retryAfterMs)
          // A server that says when is left alone until then.
          if (error.retryAfterMs === undefined) wakes = wakeUps
          onState({ kind: 'offline', error, nextAttemptAt: clock.now() + pauseMs })
        } else {
          pauseMs = undefined
          onState({ kind: 'stopped', reason, error })
        }
      }
      await pauseUntil(clock, pauseMs, signal, (end) => {
        this.#listAgain = end
        return wakes?.(end) ?? (() => {})
      })
    }
  }

  async #names(): Promise<readonly string[]> {
    const { remote, prefix } = this.#context
    const names: string[] = []
    let count = 0
    for await (const { name, deletedAt } of remote.listAllStreams({ prefix }, { signal: this.#signal })) {
      if (deletedAt === null && syncedNameProblem(name, prefix) === undefined) names.push(name)
      if (++count === STREAMS_MAX) break
    }
    return names
  }
}
