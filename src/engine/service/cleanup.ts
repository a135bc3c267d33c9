import type { SharedSignal } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import {
  type BasinDocument,
  DEADLINE_KINDS,
  type Documents,
  deadlinePrefix,
  deadlineTimeOf,
  listDocuments,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { closedError, conflictError } from '../log/errors.ts'
import { CONFLICTS_MAX, type Commit } from '../streams/catalog.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'
import type { Deadlines } from './deadlines.ts'
import type { StreamChanges } from './stream-changes.ts'
import type { UsageRecorder } from './usage.ts'

const PAGE_DOCUMENTS = 100
/** So few that appends wait for some milliseconds only. */
const RECLAIMED_BLOCKS_MAX = 250
/** How often expired tokens are looked for, in milliseconds. */
const TOKEN_CHECK_MS = 3_600_000
/** How long an expired token stays listed, in milliseconds. */
const EXPIRED_LISTED_MS = 86_400_000

export interface CleanupContext {
  readonly session: StorageSession
  readonly changes: StreamChanges
  readonly deadlines: Deadlines
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

  /** Deletes streams that are empty or have expired, and what creations left: see `deadlines.ts`. */
  async checkDeadlines(): Promise<boolean> {
    const { confirmedClock, deadlines } = this.#context
    const now = await confirmedClock.now()
    for (const kind of DEADLINE_KINDS) {
      await this.#forEachPage('deadlines', deadlinePrefix(kind), async (documents) => {
        const due = documents.filter(({ key }) => deadlineTimeOf(key) <= now)
        for (const deadline of due) await this.#attempt(() => deadlines.check(deadline, now))
        // The deadlines of a kind are ordered by time.
        return due.length === documents.length
      })
    }
    return false
  }

  /** Deletes the streams of basins that are being deleted, then the basins. */
  async finishDeletions(): Promise<boolean> {
    await this.#forEachPage('basins', '', async (basins) => {
      for (const basin of basins) {
        if (basin.value.deletedAt === null) continue
        // If some could not be deleted, the next run tries again.
        const isDeleted = await this.#attempt(() => this.#deleteBasin(basin))
        if (isDeleted) this.#context.usage.basinDeleted(basin.key)
      }
      return true
    })
    return false
  }

  async #deleteBasin({ key, version }: Versioned<BasinDocument>): Promise<void> {
    await this.deleteStreams(key)
    await this.#context.session.commit([{ kind: 'delete', collection: 'basins', key, expect: version }])
  }

  /**
   * Deletes the streams of a basin that gets no more of them. Once it resolves, no engine acknowledges
   * appends to them. Rejects if one cannot be deleted.
   */
  async deleteStreams(basin: string): Promise<void> {
    const { session, changes, closing } = this.#context
    const range = { prefix: streamKey(basin, ''), after: '', limit: PAGE_DOCUMENTS }
    for (let attempts = 0; attempts < CONFLICTS_MAX; attempts++) {
      const streams = await listDocuments(session, 'streams', range)
      if (streams.length === 0) return
      if (closing.aborted) throw closedError()
      const isTogether = attempts === 0
      const commit = isTogether
        ? commitTogether(session)
        : (removal: readonly CatalogChange[]) => session.commit(removal)
      const remove = async (stream: Versioned<StreamDocument>) => {
        try {
          await changes.removeWithBasin(commit, stream)
          attempts = -1
        } catch (error) {
          // One by one next, and the list shows whether it is left.
          if (!isTogether && !StorageConflict.is(error)) throw error
        }
      }
      const removals = await Promise.allSettled(streams.map(remove))
      for (const removal of removals) if (removal.status === 'rejected') throw removal.reason
      await macrotask()
    }
    throw conflictError()
  }

  /** Deletes tokens that expired more than a day ago. Runs once an hour. */
  async deleteExpiredTokens(): Promise<boolean> {
    const { session, confirmedClock } = this.#context
    const now = await confirmedClock.now()
    // The absolute difference, in case the clock was set back.
    if (Math.abs(now - this.#tokensCheckedAt) < TOKEN_CHECK_MS) return false
    await this.#forEachPage('tokens', '', async (tokens) => {
      for (const { key, value, version } of tokens) {
        const { expiresAt } = value
        if (expiresAt === null || expiresAt + EXPIRED_LISTED_MS > now) continue
        // A token that was revoked or replaced meanwhile stays as it is.
        await this.#attempt(() =>
          session.commit([{ kind: 'delete', collection: 'tokens', key, expect: version }]),
        )
      }
      return true
    })
    this.#tokensCheckedAt = now
    return false
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
  async #attempt(work: () => Promise<void>): Promise<boolean> {
    const { closing, onBackgroundError } = this.#context
    try {
      await work()
      return true
    } catch (error) {
      if (!StorageConflict.is(error) && !closing.aborted) onBackgroundError(error)
      return false
    }
  }
}

/** Commits what is passed in one turn in one commit. */
function commitTogether(session: StorageSession): Commit {
  const all: CatalogChange[] = []
  let committed: Promise<void> | undefined
  return (changes) => {
    all.push(...changes)
    committed ??= Promise.resolve().then(() => session.commit(all))
    return committed
  }
}
