import { hourOf } from '../../core/usage/activity.ts'
import { seriesName } from '../../core/usage/series.ts'
import { alignDown, MINUTE_SECONDS } from '../../core/usage/tiers.ts'
import type { Operation } from '../../model/access.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricsQuery,
  StreamMetricSet,
} from '../../model/metrics.ts'
import type { StreamRef } from '../context.ts'
import type { MetricsService } from '../services.ts'
import { OpenReads } from './open-reads.ts'
import { RecentAppends } from './recent-appends.ts'
import { countersNow, newCounters, type UsageCounters } from './usage-counters.ts'
import { ACCOUNT, basinScope } from './usage-documents.ts'
import { type UsageEngine, UsageFlush } from './usage-flush.ts'
import type { AppendUsage, UsageRecorder } from './usage-recorder.ts'
import type { UsageWork } from './usage-work.ts'

/**
 * Measures what an engine is used for, and tells it (service-interface.md "Basin-level metrics", wire-behaviour.md 11). What was recorded is
 * stored once a minute, on close and before a query, so that a crash loses at most what the last minute added up to; what the storage does not take is kept and
 * tried again. Neither is ever an append's or a read's trouble: failures go to `onBackgroundError`.
 */
export class Usage implements UsageRecorder, MetricsService {
  readonly #engine: UsageEngine
  readonly #flush: UsageFlush
  readonly #counters = newCounters()
  readonly #recentAppends: RecentAppends
  readonly #openReads: OpenReads
  #cancelTimer: (() => void) | undefined
  #flushing: Promise<void> = Promise.resolve()
  /** The flush that has not begun. */
  #nextFlush: Promise<void> | undefined
  #work: Promise<UsageWork> | undefined
  #ticks = false
  #closed = false

  constructor(engine: UsageEngine) {
    this.#engine = engine
    this.#flush = new UsageFlush(engine)
    const { pending, changedLogs } = this.#flush
    this.#openReads = new OpenReads((basin, minute) =>
      pending.add(basinScope(basin), STREAMING_READS, minute, 1),
    )
    this.#recentAppends = new RecentAppends(
      ({ basin, storageClass, minute }) =>
        pending.add(basinScope(basin), APPENDS[storageClass].operations, minute, 1),
      ({ basin, storageClass, minute, logId, bytes }) => {
        pending.add(basinScope(basin), APPENDS[storageClass].throughput, minute, bytes)
        changedLogs.add(logId)
      },
    )
  }

  /** From now on it looks every minute whether there is something to store; before, only while there is. */
  start(): void {
    this.#ticks = true
    this.#flushLater()
  }

  // What was done ----------------------------------------------------------------------------------------------------

  operation(operation: Operation, basin: string | undefined): void {
    const { operations } = this.#counters
    operations[operation] = (operations[operation] ?? 0) + 1
    if (basin === undefined) this.#add(ACCOUNT, seriesName('account-ops', operation), 1)
    else this.#add(basinScope(basin), seriesName('basin-ops', operation), 1)
  }

  appended(append: AppendUsage): void {
    const counters = this.#counters
    counters.appends++
    counters.appendPermitSeconds.observe(append.permitMs / 1000)
    counters.appendAckSeconds.observe(append.ackMs / 1000)
    counters.appendBatchRecords.observe(append.records)
    counters.appendBatchBytes.observe(append.meteredBytes)
    counters.appendedRecords += append.records
    counters.appendedBytes += append.meteredBytes
    this.#recentAppends.add(append)
    this.#flushLater()
  }

  unaryRead(basin: string): void {
    this.#counters.unaryReads++
    this.#add(basinScope(basin), UNARY_READS, 1)
  }

  delivered(basin: string, meteredBytes: number): void {
    this.#counters.readBatches++
    this.#counters.readBytes += meteredBytes
    if (meteredBytes > 0) this.#add(basinScope(basin), READ_BYTES, meteredBytes)
  }

  streamingRead(basin: string): () => void {
    const { clock } = this.#engine.settings
    this.#counters.streamingReads++
    const end = this.#openReads.begin(basin, clock.now())
    this.#flushLater()
    return () => end(clock.now())
  }

  storedChanged(logIds: readonly string[]): void {
    for (const logId of logIds) this.#flush.changedLogs.add(logId)
    this.#flushLater()
  }

  streamCreated(basin: string): void {
    this.#hadStream(basin, this.#now())
  }

  basinDeleted(basin: string): void {
    this.#flush.markGone(basin, this.#now())
    this.#flushLater()
  }

  streamDeleted(basin: string, createdAt: number): void {
    this.#hadStream(basin, Math.floor(createdAt / 1000))
  }

  /** What this engine did since it was opened, whatever was stored. */
  counters(): UsageCounters {
    return countersNow(this.#counters)
  }

  // What is told of it -----------------------------------------------------------------------------------------------

  /** Rejects with 422 `invalid` for a query that makes no sense, `storage` when the storage fails. */
  async account(query: MetricsQuery<AccountMetricSet>): Promise<readonly Metric[]> {
    return (await this.#loadWork()).metrics.account(query)
  }

  /** Errors as for the account. A basin that does not exist has used nothing. */
  async basin(basin: string, query: MetricsQuery<BasinMetricSet>): Promise<readonly Metric[]> {
    return (await this.#loadWork()).metrics.basin(basin, query)
  }

  /** Errors as for the account. A stream that does not exist holds nothing. */
  async stream(ref: StreamRef, query: MetricsQuery<StreamMetricSet>): Promise<readonly Metric[]> {
    return (await this.#loadWork()).metrics.stream(ref, query)
  }

  // Upkeep -----------------------------------------------------------------------------------------------------------

  /** A bounded step of what is to be done once an hour; resolves to whether more is left. Rejects when the storage fails: call again later. */
  async maintain(): Promise<boolean> {
    return !this.#closed && (await this.#loadWork()).maintain()
  }

  /** Stores what was recorded; afterwards nothing is armed and nothing is stored. */
  async close(): Promise<void> {
    if (this.#closed) return this.#flushing
    this.#closed = true
    this.#cancelTimer?.()
    await this.#storeSoon(() => this.#minute()).catch(this.#engine.settings.onBackgroundError)
  }

  #add(scope: string, series: string, value: number): void {
    this.#flush.pending.add(scope, series, this.#now(), value)
    this.#flushLater()
  }

  #hadStream(basin: string, since: number): void {
    const first = hourOf(since)
    this.#flush.markActive(basin, [first, Math.max(first, hourOf(this.#now()))])
    this.#flushLater()
  }

  #flushLater(): void {
    if (this.#cancelTimer !== undefined || this.#closed) return
    const { clock, onBackgroundError } = this.#engine.settings
    const minuteMs = MINUTE_SECONDS * 1000
    const minute = this.#minute()
    const run = () => {
      this.#cancelTimer = undefined
      if (this.#ticks) this.#flushLater()
      // Also while a storage that hangs keeps what was recorded before from being stored.
      this.#settle()
      // What is measured now is what was there when the minute ended. Timers may be late, and a little early.
      void this.#storeSoon(() => Math.max(minute, this.#minute() - MINUTE_SECONDS)).catch(onBackgroundError)
    }
    this.#cancelTimer = clock.schedule(minuteMs - (clock.now() % minuteMs), run, { background: true })
  }

  /** Stores what was recorded before the call, together with that of others who ask until it begins. What is stored counts for the minute. */
  #storeSoon(minute: () => number): Promise<void> {
    if (this.#nextFlush !== undefined) return this.#nextFlush
    const next = this.#flushing.then(() => {
      this.#nextFlush = undefined
      return this.#store(minute())
    })
    this.#nextFlush = next
    this.#flushing = next.catch(() => {})
    return next
  }

  /** Adds up what only becomes usage in the course of time. */
  #settle(): void {
    const now = this.#engine.settings.clock.now()
    this.#openReads.settle(now)
    this.#recentAppends.settle(now)
  }

  async #store(minute: number): Promise<void> {
    this.#settle()
    try {
      if (this.#flush.isDirty) await this.#flush.run(minute, this.#now())
    } finally {
      // Of a read that stays open something falls due every minute.
      if (this.#ticks || this.#flush.isDirty || this.#openReads.size > 0) this.#flushLater()
      else {
        this.#cancelTimer?.()
        this.#cancelTimer = undefined
      }
    }
  }

  async #loadWork(): Promise<UsageWork> {
    this.#work ??= import('./usage-work.ts').then(
      ({ UsageWork }) => new UsageWork(this.#engine, () => this.#storeSoon(() => this.#minute())),
    )
    try {
      return await this.#work
    } catch (cause) {
      // A module that could not be fetched now may be later.
      this.#work = undefined
      throw new HeadwaterError('unavailable', 'the usage metrics could not be loaded', { cause })
    }
  }

  /** In seconds. */
  #now(): number {
    return Math.floor(this.#engine.settings.clock.now() / 1000)
  }

  #minute(): number {
    return alignDown(this.#now(), MINUTE_SECONDS)
  }
}

const UNARY_READS = seriesName('read-ops', 'unary')
const STREAMING_READS = seriesName('read-ops', 'streaming')
const READ_BYTES = seriesName('read-throughput', 'read_bytes')
const APPENDS = {
  standard: appendSeries('standard'),
  express: appendSeries('express'),
} as const

function appendSeries(storageClass: 'standard' | 'express') {
  return {
    operations: seriesName('append-ops', storageClass),
    throughput: seriesName('append-throughput', storageClass),
  }
}
