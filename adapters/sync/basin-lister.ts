import type { Basin } from '../../src/api/basin.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { type OpenStream, syncedNameProblem } from '../../src/sync/basin.ts'
import { asHeadwaterError, backOffMs } from '../../src/sync/failures.ts'
import { type MirrorState, mirrorOutcome } from '../../src/sync/mirror.ts'
import { pauseUntil, type WakeUps } from './pause.ts'

/** The most streams of a server that are listed. */
const STREAMS_MAX = 10_000
/** How long a stream that waits for a connection may have one while others wait, in milliseconds. */
const VISIT_MS = 30_000

interface ListerContext {
  readonly remote: Basin
  readonly prefix: string
  /** The time between two lists, and between two visits of a stream, in milliseconds. */
  readonly everyMs: number
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
  /** The open streams of all tabs that have no connection. */
  readonly waiting: () => readonly OpenStream[]
  /** Gives the last connection to a stream, or back to the one that was used last. */
  readonly onVisit: (name: string | undefined) => void
  readonly onNames: (names: readonly string[]) => void
  readonly onState: (state: MirrorState) => void
}

/**
 * What one tab of a synced basin does for all: it lists the streams of the server again and again, and visits
 * open streams that have no connection, one after another.
 */
export class BasinLister {
  readonly #context: ListerContext
  readonly #ending = new AbortController()
  /** When the streams that were visited in this round had been used last. */
  readonly #visited = new Map<string, number>()
  #listAgain = () => {}
  #lookAgain = () => {}

  constructor(context: ListerContext) {
    this.#context = context
    void this.#list()
    void this.#visitAll()
  }

  /** Aborts when the lister ends. */
  get signal(): AbortSignal {
    return this.#ending.signal
  }

  end(): void {
    this.#ending.abort()
  }

  /** Lists and visits at once. */
  retry(): void {
    this.#visited.clear()
    this.#lookAgain()
    this.#listAgain()
  }

  /** Looks again at what waits, and how far the visited stream is. */
  check(): void {
    this.#lookAgain()
  }

  /** Lists the streams until the signal aborts, with pauses that grow while that fails. */
  async #list(): Promise<void> {
    const { everyMs, clock, random, wakeUps, onNames, onState } = this.#context
    const { signal } = this
    for (let failures = 0; !signal.aborted; ) {
      let pauseMs: number | undefined = everyMs
      let wakes: WakeUps | undefined = wakeUps
      try {
        onNames(await this.#names())
        failures = 0
        onState({ kind: 'live' })
      } catch (thrown) {
        if (signal.aborted) return
        const error = asHeadwaterError(thrown)
        const reason = mirrorOutcome(error, false)
        pauseMs = reason === 'retry' ? backOffMs(++failures, random(), error.retryAfterMs) : undefined
        // A server that says when is left alone until then.
        if (reason !== 'retry' || error.retryAfterMs !== undefined) wakes = undefined
        if (reason !== 'retry') onState({ kind: 'stopped', reason, error })
        else onState({ kind: 'offline', error, nextAttemptAt: clock.now() + pauseMs! })
      }
      await pauseUntil(clock, pauseMs, signal, (end) => {
        this.#listAgain = end
        return failures > 0 && wakes !== undefined ? wakes(end) : () => {}
      })
    }
  }

  async #names(): Promise<readonly string[]> {
    const { remote, prefix } = this.#context
    const { signal } = this
    const names: string[] = []
    let count = 0
    for await (const { name, deletedAt } of remote.listAllStreams({ prefix }, { signal })) {
      if (deletedAt === null && syncedNameProblem(name, prefix) === undefined) names.push(name)
      if (++count === STREAMS_MAX) break
    }
    return names
  }

  /** Visits each stream that waits once in a round, and again if it was used since. */
  async #visitAll(): Promise<void> {
    const { everyMs, clock, waiting, onVisit } = this.#context
    const { signal } = this
    let cancelRound: (() => void) | undefined
    // Not before all are visited: else the first ones could keep the connection from the others.
    const beginRoundLater = () => {
      cancelRound ??= clock.schedule(
        everyMs,
        () => {
          cancelRound = undefined
          this.#visited.clear()
          this.#lookAgain()
        },
        { background: true },
      )
    }
    const due = () => waiting().find(({ name, usedAt }) => this.#visited.get(name) !== usedAt)
    while (!signal.aborted) {
      const next = due()
      if (next === undefined) beginRoundLater()
      else this.#visited.set(next.name, next.usedAt)
      onVisit(next?.name)
      const isOver = () => {
        if (next === undefined) return due() !== undefined
        return waiting().every(({ name, isDone }) => name !== next.name || isDone)
      }
      await pauseUntil(clock, next && VISIT_MS, signal, (end) => {
        this.#lookAgain = () => {
          if (isOver()) end()
        }
        return () => {
          this.#lookAgain = () => {}
        }
      })
    }
    cancelRound?.()
  }
}
