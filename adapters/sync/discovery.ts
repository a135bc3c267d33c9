import type { Basin } from '../../src/api/basin.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError, backOffMs } from '../../src/sync/failures.ts'
import { type MirrorState, mirrorOutcome } from '../../src/sync/mirror.ts'
import { syncedNameProblem } from '../../src/sync/synced-names.ts'
import type { WakeUps } from './page-events.ts'
import { pauseUntil } from './pause.ts'

/** The most streams of a server that are listed. */
const STREAMS_MAX = 10_000
/** The least time from one list to the next, unless the app asks for it, in milliseconds. */
const LEAST_MS = 5_000

interface DiscoveryContext {
  readonly remote: Basin
  readonly prefix: string
  /** The time between two lists, in milliseconds. */
  readonly everyMs: number
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly onNames: (names: ReadonlySet<string>) => Promise<void>
  readonly onState: (state: MirrorState) => void
}

/** Lists the streams of a server again and again, with pauses that grow while that fails. */
export class Discovery {
  readonly #context: DiscoveryContext
  #wake: ((isAsked: boolean) => void) | undefined

  constructor(context: DiscoveryContext) {
    this.#context = context
  }

  /** Lists again: at once if the app asks for it, otherwise unless that was done just now. */
  again(isAsked: boolean): void {
    this.#wake?.(isAsked)
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { everyMs, clock, random, wakeUps, onNames, onState } = this.#context
    const wake = () => this.again(false)
    const ignoreWakeUps = wakeUps(wake, wake)
    onState({ kind: 'connecting' })
    for (let failures = 0; !signal.aborted; ) {
      let pauseMs: number | undefined = everyMs
      let isWakeable = true
      const startedAt = clock.now()
      try {
        await onNames(await this.#list(signal))
        failures = 0
        if (!signal.aborted) onState({ kind: 'live' })
      } catch (thrown) {
        if (signal.aborted) break
        const error = asHeadwaterError(thrown)
        const reason = mirrorOutcome(error, false)
        // A server that says when is left alone until then.
        isWakeable = reason === 'retry' && error.retryAfterMs === undefined
        pauseMs = reason === 'retry' ? backOffMs(++failures, random(), error.retryAfterMs) : undefined
        if (reason !== 'retry') onState({ kind: 'stopped', reason, error })
        else onState({ kind: 'offline', error, nextAttemptAt: clock.now() + pauseMs! })
      }
      await pauseUntil(clock, pauseMs, signal, (end) => {
        this.#wake = (isAsked) => {
          const isDue = isWakeable && Math.abs(clock.now() - startedAt) >= LEAST_MS
          if (isAsked || isDue) end()
        }
        return () => {
          this.#wake = undefined
        }
      })
    }
    ignoreWakeUps()
  }

  async #list(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const { remote, prefix } = this.#context
    const names = new Set<string>()
    let count = 0
    for await (const { name, deletedAt } of remote.listAllStreams({ prefix }, { signal })) {
      if (deletedAt === null && syncedNameProblem(name, prefix) === undefined) names.add(name)
      if (++count === STREAMS_MAX) break
    }
    return names
  }
}
