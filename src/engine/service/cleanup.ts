import type { SharedSignal } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { LazyModule } from '../../runtime/lazy-module.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { StorageSession } from '../../storage/contract.ts'
import {
  DEADLINE_PREFIX,
  type Documents,
  deadlineTimeOf,
  listDocuments,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'
import type { Control } from './control.ts'
import type { Removal } from './removal.ts'
import type { UsageRecorder } from './usage.ts'

const PAGE_DOCUMENTS = 100
/** So few that appends wait for some milliseconds only. */
const RECLAIMED_BLOCKS_MAX = 250
/** How often expired tokens are looked for, in milliseconds. */
const TOKEN_CHECK_MS = 3_600_000

export interface CleanupContext {
  readonly session: StorageSession
  readonly control: LazyModule<Control>
  readonly usage: UsageRecorder
  readonly clock: Clock
  readonly confirmedClock: ConfirmedClock
  readonly trimGraceMs: number
  readonly onBackgroundError: (error: unknown) => void
  /** Aborts when the engine closes: long tasks stop early. */
  readonly closing: SharedSignal
}

/**
 * The tasks of background work. Each call is bounded and resolves to whether more is left. One item that
 * fails is reported and does not keep the others from being processed; the next run tries it again.
 */
export class Cleanup {
  readonly #context: CleanupContext
  #tokensCheckedAt = Number.NEGATIVE_INFINITY

  constructor(context: CleanupContext) {
    this.#context = context
  }

  /** Frees trimmed and expired records, and what deleted streams left. */
  async reclaim(): Promise<boolean> {
    const { session, confirmedClock, clock, trimGraceMs, usage } = this.#context
    const { more, logIds } = await session.reclaim({
      now: await confirmedClock.now(),
      trimmedBefore: clock.now() - trimGraceMs,
      blocksMax: RECLAIMED_BLOCKS_MAX,
    })
    if (logIds.length > 0) usage.storedChanged(logIds)
    return more
  }

  /** Deletes empty streams whose delete-on-empty deadline has passed. */
  async deleteEmptyStreams(): Promise<boolean> {
    const now = await this.#context.confirmedClock.now()
    await this.#forEachPage('deadlines', DEADLINE_PREFIX, async (documents) => {
      const due = documents.filter(({ key }) => deadlineTimeOf(key) <= now)
      for (const deadline of due) {
        await this.#attempt((removal) => removal.checkDeadline(deadline, now))
      }
      // Deadlines are ordered by time.
      return due.length === documents.length
    })
    return false
  }

  /** Deletes the streams of basins that are being deleted, then the basins. */
  async finishDeletions(): Promise<boolean> {
    await this.#forEachPage('basins', '', async (basins) => {
      for (const basin of basins) {
        if (basin.value.deletedAt === null) continue
        // If some could not be deleted, the next run tries again.
        const isDeleted = await this.#attempt((removal) => removal.deleteBasin(basin))
        if (isDeleted) this.#context.usage.basinDeleted(basin.key)
      }
      return true
    })
    return false
  }

  /** Deletes tokens that expired more than a day ago. Runs once an hour. */
  async deleteExpiredTokens(): Promise<boolean> {
    const now = await this.#context.confirmedClock.now()
    // The absolute difference, in case the clock was set back.
    if (Math.abs(now - this.#tokensCheckedAt) < TOKEN_CHECK_MS) return false
    await this.#forEachPage('tokens', '', async (documents) => {
      for (const token of documents) {
        // A token that was revoked or replaced meanwhile stays as it is.
        await this.#attempt((removal) => removal.deleteExpiredToken(token, now))
      }
      return true
    })
    this.#tokensCheckedAt = now
    return false
  }

  /** Deletes the streams of a basin that gets no more of them: see `removal.ts`. */
  async deleteStreams(basin: string): Promise<void> {
    await (await this.#context.control.load()).removal.deleteStreams(basin)
  }

  /** Calls `process` with each page of documents, until it resolves to false or the engine closes. */
  async #forEachPage<From extends keyof Documents>(
    collection: From,
    prefix: string,
    process: (documents: readonly Versioned<Documents[From]>[]) => Promise<boolean>,
  ): Promise<void> {
    const { session, closing } = this.#context
    let after = ''
    while (!closing.aborted) {
      const documents = await listDocuments(session, collection, { prefix, after, limit: PAGE_DOCUMENTS })
      if (!(await process(documents)) || documents.length < PAGE_DOCUMENTS) return
      after = documents.at(-1)!.key
      await macrotask()
    }
  }

  /**
   * Resolves to whether the work succeeded. A conflict means that another engine did it, or that the stream
   * was used.
   */
  async #attempt(work: (removal: Removal) => Promise<void>): Promise<boolean> {
    const { control, closing, onBackgroundError } = this.#context
    try {
      await work((await control.load()).removal)
      return true
    } catch (error) {
      if (!StorageConflict.is(error) && !closing.aborted) onBackgroundError(error)
      return false
    }
  }
}
