import { decideDeleteOnEmpty } from '../core/delete-on-empty.ts'
import { isExpired } from '../core/retention.ts'
import type { Document } from '../storage/contract.ts'
import { StorageConflict } from '../storage/errors.ts'
import { deleteExpiredTokens } from './access/expired-tokens.ts'
import type { EngineContext } from './context.ts'
import type { Streams } from './control/streams.ts'
import { DEADLINE_PREFIX, type DeadlineDocument, deadlineKey, deadlineTimeOf } from './deadlines.ts'
import { asJson, type BasinDocument, type StreamDocument, streamKey } from './documents.ts'
import { macrotask } from './macrotask.ts'

const TICK_MS = 60_000
const TICK_JITTER = 0.1
const PAGE = 100
const RECLAIMED_BLOCKS_MAX = 1_000
const TOKEN_CHECK_MS = 3_600_000

/**
 * What runs beside the calls: freeing trimmed and expired records, deleting empty streams, finishing the deletion of basins. Runs about
 * every 60 s and when there is something to do; every step is bounded and gives way to others; what fails is tried again at the next run.
 *
 * Where a storage is shared, it may be another engine's turn to do that: then this one only looks after its own usage, and finishes the deletions
 * that it was asked for.
 */
export class Background {
  readonly #engine: EngineContext
  readonly #streams: Streams
  readonly #maintainUsage: () => Promise<boolean>
  #cancelTick: (() => void) | undefined
  /** The latest time for which a run was asked. */
  #wantedAt = 0
  #scheduled: { readonly at: number; readonly cancel: () => void } | undefined
  #running: Promise<void> | undefined
  /** Beside the rest: it may take a while. */
  #usageUpkeep: Promise<void> | undefined
  #runAgain = false
  #isOurTurn = false
  #endTurn: (() => void) | undefined
  /** Whether a basin was deleted here since the last run began. */
  #hasDeletions = false
  #closed = false
  #tokensCheckedAt = Number.NEGATIVE_INFINITY

  constructor(engine: EngineContext, streams: Streams, maintainUsage: () => Promise<boolean>) {
    this.#engine = engine
    this.#streams = streams
    this.#maintainUsage = maintainUsage
  }

  /** With the random number that the time of the first regular run is made of. */
  start(chance: number): void {
    const { session } = this.#engine
    const onTurn = (isOurs: boolean) => {
      this.#isOurTurn = isOurs
      if (isOurs) this.runSoon()
    }
    this.#scheduleTick(chance)
    if (session.backgroundTurn === undefined) onTurn(true)
    else this.#endTurn = session.backgroundTurn(onTurn)
    if (this.#running === undefined) this.runSoon()
  }

  /** Runs now, or once more after the run that is under way. */
  runSoon(): void {
    if (this.#closed) return
    if (this.#running !== undefined) {
      this.#runAgain = true
      return
    }
    this.#running = this.#run().finally(() => {
      this.#running = undefined
      if (!this.#runAgain) return
      this.#runAgain = false
      this.runSoon()
    })
  }

  /** A basin was deleted here: whoever asked for it need not wait for another engine. */
  finishDeletionsSoon(): void {
    this.#hasDeletions = true
    this.runSoon()
  }

  /** Sees to it that a run begins `delayMs` from now, or soon after when one is scheduled, however often it is asked. */
  reclaimSoon(delayMs: number): void {
    if (this.#closed) return
    const { clock } = this.#engine.settings
    const at = clock.now() + delayMs
    this.#wantedAt = Math.max(this.#wantedAt, at)
    if (this.#scheduled !== undefined && this.#scheduled.at <= at) return
    this.#scheduled?.cancel()
    const run = () => {
      this.#scheduled = undefined
      const left = this.#wantedAt - clock.now()
      if (left > 0) this.reclaimSoon(left)
      this.runSoon()
    }
    this.#scheduled = { at, cancel: clock.schedule(delayMs, run, { background: true }) }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#endTurn?.()
    this.#cancelTick?.()
    this.#scheduled?.cancel()
    await this.#running
    await this.#usageUpkeep
  }

  #scheduleTick(chance: number): void {
    const { clock, random } = this.#engine.settings
    const delay = TICK_MS * (1 + TICK_JITTER * (2 * chance - 1))
    const tick = () => {
      this.#scheduleTick(random())
      this.runSoon()
    }
    if (!this.#closed) this.#cancelTick = clock.schedule(delay, tick, { background: true })
  }

  async #run(): Promise<void> {
    this.#usageUpkeep ??= this.#repeat(this.#maintainUsage).finally(() => {
      this.#usageUpkeep = undefined
    })
    if (this.#hasDeletions) {
      this.#hasDeletions = false
      await this.#repeat(() => this.#finishDeletions())
    }
    const steps = [
      () => this.#reclaim(),
      () => this.#deleteEmptyStreams(),
      () => this.#finishDeletions(),
      () => this.#deleteExpiredTokens(),
    ]
    for (const step of steps) await this.#repeat(async () => this.#isOurTurn && (await step()))
  }

  /** Until nothing more is left. */
  async #repeat(step: () => Promise<boolean>): Promise<void> {
    try {
      while (!this.#closed && (await step())) await macrotask()
    } catch (error) {
      if (!this.#closed) this.#engine.settings.onBackgroundError(error)
    }
  }

  async #reclaim(): Promise<boolean> {
    const { clock, trimGraceMs } = this.#engine.settings
    const now = clock.now()
    const { more, logIds } = await this.#engine.session.reclaim({
      now,
      trimmedBefore: now - trimGraceMs,
      blocksMax: RECLAIMED_BLOCKS_MAX,
    })
    if (logIds.length > 0) this.#engine.usage.storedChanged(logIds)
    return more
  }

  /** Resolves to false: all that is due is looked at in one go. */
  async #deleteEmptyStreams(): Promise<boolean> {
    const { session, settings } = this.#engine
    const now = settings.clock.now()
    let after = ''
    for (;;) {
      const documents = await session.list('deadlines', { prefix: DEADLINE_PREFIX, after, limit: PAGE })
      const due = documents.filter(({ key }) => deadlineTimeOf(key) <= now)
      for (const deadline of due) await this.#attempt(this.#meetDeadline(deadline, now))
      if (due.length < PAGE || this.#closed) return false
      after = due.at(-1)!.key
      await macrotask()
    }
  }

  /** Once an hour. Resolves to false: done in one go. */
  async #deleteExpiredTokens(): Promise<boolean> {
    const { session, settings } = this.#engine
    const now = settings.clock.now()
    // Also when the clock was set back.
    if (Math.abs(now - this.#tokensCheckedAt) < TOKEN_CHECK_MS) return false
    await deleteExpiredTokens(session, now, () => this.#closed)
    this.#tokensCheckedAt = now
    return false
  }

  async #meetDeadline(deadline: Document, now: number): Promise<void> {
    const { session } = this.#engine
    const { basin, stream, logId } = deadline.value as unknown as DeadlineDocument
    const met = {
      kind: 'delete',
      collection: 'deadlines',
      key: deadline.key,
      expect: deadline.version,
    } as const
    const document = await session.get('streams', streamKey(basin, stream))
    const value = document?.value as unknown as StreamDocument | undefined
    const head = value?.logId === logId ? await session.head(logId) : undefined
    if (document === undefined || value === undefined || head === undefined) {
      await session.commit([met])
      return
    }
    const hasRecords = await this.#hasRecords(logId, head.trimPoint, head.tail.seqNum, now)
    const { minAgeSeconds } = value.config.deleteOnEmpty
    const decision = decideDeleteOnEmpty({ minAgeSeconds, hasRecords, lastWriteAt: head.appendedAt }, now)
    if (decision === 'delete') {
      const commit = (changes: Parameters<typeof session.commit>[0]) => session.commit([...changes, met])
      // An append that came in between keeps the stream: the deletion conflicts, the deadline stays and is met again.
      await this.#streams.remove(commit, value, document.version, { expectSeqNum: head.tail.seqNum })
    } else if (decision === null) {
      await session.commit([met])
    } else {
      const key = deadlineKey(decision.checkAt, logId)
      const again = {
        kind: 'put',
        collection: 'deadlines',
        key,
        value: asJson({ basin, stream, logId }),
      } as const
      await session.commit(key === deadline.key ? [again] : [met, again])
    }
  }

  async #hasRecords(logId: string, trimPoint: number, endSeqNum: number, now: number): Promise<boolean> {
    let from = trimPoint
    while (from < endSeqNum) {
      const blocks = await this.#engine.session.read(logId, {
        from: { seqNum: from },
        endSeqNum,
        bytesMax: 1,
      })
      const last = blocks.at(-1)
      if (last === undefined) return false
      if (blocks.some(({ expiresAt }) => !isExpired(expiresAt, now))) return true
      from = last.endSeqNum
    }
    return false
  }

  /** Deletes the streams of basins that are being deleted, then the basins. Resolves to true when more is left. */
  async #finishDeletions(): Promise<boolean> {
    const { session } = this.#engine
    let after = ''
    for (;;) {
      const basins = await session.list('basins', { prefix: '', after, limit: PAGE })
      for (const basin of basins) {
        const { deletedAt } = basin.value as unknown as BasinDocument
        if (deletedAt !== null && (await this.#deleteStreamsOf(basin))) return true
      }
      if (basins.length < PAGE || this.#closed) return false
      after = basins.at(-1)!.key
      await macrotask()
    }
  }

  /** Resolves to true when the basin may still have streams to delete. */
  async #deleteStreamsOf(basin: Document): Promise<boolean> {
    const { session } = this.#engine
    const commit = session.commit.bind(session)
    const prefix = streamKey(basin.key, '')
    const streams = await session.list('streams', { prefix, after: '', limit: PAGE })
    let deleted = 0
    for (const { value, version } of streams) {
      const document = value as unknown as StreamDocument
      if (await this.#attempt(this.#streams.remove(commit, document, version))) deleted++
    }
    // What cannot be deleted now is tried at the next run.
    if (streams.length > 0) return deleted > 0
    const gone = { kind: 'delete', collection: 'basins', key: basin.key, expect: basin.version } as const
    if (await this.#attempt(commit([gone]))) this.#engine.usage.basinDeleted(basin.key)
    return false
  }

  /**
   * Resolves to whether the work was done. A conflict means that another engine did it, or that the stream was used; a failure is
   * reported. Either way it is looked at again at the next run, and does not keep the rest from being done.
   */
  async #attempt(work: Promise<void>): Promise<boolean> {
    try {
      await work
      return true
    } catch (error) {
      if (!StorageConflict.is(error) && !this.#closed) this.#engine.settings.onBackgroundError(error)
      return false
    }
  }
}
