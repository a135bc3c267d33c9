import { HeadwaterError } from '../../model/errors.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { EngineContext } from '../context.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'

const INTERVAL_MS = 60_000
const JITTER = 0.1
/** The time after which space that could not be freed is freed again; doubles up to the interval. */
const RETRY_MS_MIN = 1_000
/** So few that appends wait for some milliseconds only. */
const RECLAIMED_BLOCKS_MAX = 250
/** Browsers delay the timers of hidden pages by up to a minute. */
const OVERDUE_MS = 2 * INTERVAL_MS

/** A task of an engine in the background, besides freeing space. */
export type BackgroundTask = () => Promise<void>

export interface BackgroundContext extends EngineContext {
  readonly confirmedClock: ConfirmedClock
}

/**
 * Frees space and runs {@link BackgroundTask}s, about 60 s after the last run and on request. Tasks yield to
 * other work between steps. A task that fails is reported, does not keep the others from running, and runs
 * again with the next run, which comes early if a full storage kept it from freeing space. If the storage
 * elects an engine of those that share it, only that one works.
 */
export class BackgroundWork {
  /** The time at which the timer of the next run counts as lost, in milliseconds. */
  overdueAt = 0
  readonly #context: BackgroundContext
  /** Set by `start`: they request work themselves. */
  #tasks: readonly BackgroundTask[] = []
  #timer: { readonly at: number; readonly cancel: () => void } | undefined
  /** The latest time for which a run was requested. */
  #requestedAt = 0
  #running: Promise<void> | undefined
  #isRunRequested = false
  #retryMs = RETRY_MS_MIN
  #isElected = false
  #withdraw: (() => void) | undefined
  #isClosed = false

  constructor(context: BackgroundContext) {
    this.#context = context
  }

  start(tasks: readonly BackgroundTask[]): void {
    this.#tasks = tasks
    const { session, usage } = this.#context
    const onElected = (isElected: boolean) => {
      this.#isElected = isElected
      if (!isElected) return
      this.#scheduleInterval()
      this.#run()
    }
    try {
      this.#scheduleInterval()
      usage.start()
    } catch {
      // workerd has no timers outside of requests: the first append starts the work.
      this.overdueAt = 0
      return
    }
    if (session.electForBackgroundWork === undefined) onElected(true)
    else this.#withdraw = session.electForBackgroundWork(onElected)
  }

  /**
   * Starts the work again. In workerd, the timers and the messages of a request that has ended never arrive,
   * so a run that it began may never complete either.
   */
  restart(): void {
    if (this.#isClosed) return
    this.#withdraw?.()
    this.#clearTimer()
    this.#running = undefined
    this.start(this.#tasks)
  }

  /** Frees trimmed and deleted records at this time, in milliseconds, or soon after. */
  reclaimAt(time: number): void {
    this.#requestedAt = Math.max(this.#requestedAt, time)
    this.#schedule(time)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#withdraw?.()
    this.#clearTimer()
    await this.#running
  }

  /** Schedules the run after the present one. */
  #scheduleNext(): void {
    if (this.#requestedAt > this.#context.clock.now()) this.#schedule(this.#requestedAt)
    if (this.#isElected) this.#scheduleInterval()
  }

  #scheduleInterval(): void {
    const { clock, random } = this.#context
    this.#schedule(clock.now() + INTERVAL_MS * (1 + JITTER * (2 * random() - 1)))
  }

  /** Schedules a run, unless one comes before. */
  #schedule(at: number): void {
    if (this.#isClosed || (this.#timer !== undefined && this.#timer.at <= at)) return
    const { clock } = this.#context
    const run = () => {
      this.#clearTimer()
      this.#scheduleNext()
      this.#run()
    }
    const cancel = clock.schedule(at - clock.now(), run, { background: true })
    this.#timer?.cancel()
    this.#timer = { at, cancel }
    this.overdueAt = at + OVERDUE_MS
  }

  #clearTimer(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.overdueAt = Number.POSITIVE_INFINITY
  }

  /** Runs all tasks now, or once more after the run that is under way. */
  #run(): void {
    if (this.#isClosed) return
    if (this.#running !== undefined) {
      this.#isRunRequested = true
      return
    }
    this.#running = this.#runTasks().finally(() => {
      this.#running = undefined
      if (!this.#isRunRequested) return
      this.#isRunRequested = false
      this.#run()
    })
  }

  async #runTasks(): Promise<void> {
    for (const task of [() => this.#reclaim(), ...this.#tasks]) {
      if (!this.#isElected || this.#isClosed) return
      try {
        await task()
      } catch (error) {
        if (!this.#isClosed) this.#context.onBackgroundError(error)
      }
    }
  }

  /** Frees trimmed and expired records, and what deleted streams left. */
  async #reclaim(): Promise<void> {
    const { session, usage, confirmedClock, clock, trimGraceMs } = this.#context
    try {
      for (let more = true; more && this.#isElected && !this.#isClosed; await macrotask()) {
        const limits = {
          now: await confirmedClock.now(),
          trimmedBefore: clock.now() - trimGraceMs,
          blocksMax: RECLAIMED_BLOCKS_MAX,
        }
        const reclaimed = await session.reclaim(limits)
        if (reclaimed.logIds.length > 0) usage.storedChanged(reclaimed.logIds)
        more = reclaimed.more
      }
      this.#retryMs = RETRY_MS_MIN
    } catch (error) {
      // A browser frees deleted records a moment later, and appends fail until then.
      if (HeadwaterError.is(error) && error.code === 'storage_full') {
        this.reclaimAt(clock.now() + this.#retryMs)
        this.#retryMs = Math.min(2 * this.#retryMs, INTERVAL_MS)
      }
      throw error
    }
  }
}
