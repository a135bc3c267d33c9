import { hourOf } from '../../core/usage/activity.ts'
import { seriesName } from '../../core/usage/series.ts'
import { alignDown, MINUTE_SECONDS } from '../../core/usage/tiers.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricsQuery,
  StreamMetricSet,
} from '../../model/metrics.ts'
import type { Operation } from '../../model/operations.ts'
import type { StreamRef } from '../context.ts'
import type { MetricsService } from '../services.ts'
import { OpenReads } from './open-reads.ts'
import { RecentAppends } from './recent-appends.ts'
import { countersNow, newCounters, type UsageCounters } from './usage-counters.ts'
import { ACCOUNT, basinScope } from './usage-documents.ts'
import { type UsageEngine, UsageFlush } from './usage-flush.ts'
import type { AppendUsage, UsageRecorder } from './usage-recorder.ts'
import { UsageWork } from './usage-work.ts'

/**
 * Measures what an engine is used for, and tells it (service-interface.md "Basin-level metrics", wire-behaviour.md 11). What was recorded is
 * stored once a minute, on close and before a query, so that a crash loses at most what the last minute added up to; what the storage does not take is kept and
 * tried again. Neither is ever an append's or a read's trouble: failures go to `onBackgroundError`.
 */
export class Usage implements UsageRecorder, MetricsService {
  readonly #engine: UsageEngine
  readonly #flush: UsageFlush
  readonly #work: UsageWork
  readonly #counters = newCounters()
  readonly #recentAppends: RecentAppends
  readonly #openReads: OpenReads
  #cancelTimer: (() => void) | undefined
  #flushing: Promise<void> = Promise.resolve()
  /** The flush that has not begun. */
  #nextFlush: Promise<void> | undefined
  #ticks = false
  #closed = false

  constructor(engine: UsageEngine) {
    this.#engine = engine
    this.#flush = new UsageFlush(engine)
    this.#work = new UsageWork(engine, () => this.#storeSoon(() => this.#minute()))
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

  operation(operation: Operation, basin: string | undefined, at?: number): void {
    const { operations } = this.#counters
    operations[operation] = (operations[operation] ?? 0) + 1
    if (basin === undefined) this.#add(ACCOUNT, seriesName('account-ops', operation), 1, at)
    else this.#add(basinScope(basin), seriesName('basin-ops', operation), 1, at)
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

  unaryRead(basin: string, at?: number): void {
    this.#counters.unaryReads++
    this.#add(basinScope(basin), UNARY_READS, 1, at)
  }

  delivered(basin: string, meteredBytes: number, at?: number): void {
    this.#counters.readBatches++
    this.#counters.readBytes += meteredBytes
    if (meteredBytes > 0) this.#add(basinScope(basin), READ_BYTES, meteredBytes, at)
  }

  streamingRead(basin: string, at?: number): (endedAt?: number) => void {
    const { clock } = this.#engine.settings
    this.#counters.streamingReads++
    const end = this.#openReads.begin(basin, at ?? clock.now())
    this.#flushLater()
    return (endedAt) => end(endedAt ?? clock.now())
  }

  storedChanged(logIds: readonly string[]): void {
    for (const logId of logIds) this.#flush.changedLogs.add(logId)
    this.#flushLater()
  }

  streamCreated(basin: string, at?: number): void {
    this.#hadStream(basin, this.#seconds(at), at)
  }

  basinDeleted(basin: string, at?: number): void {
    this.#flush.markGone(basin, this.#seconds(at))
    this.#flushLater()
  }

  streamDeleted(basin: string, createdAt: number, at?: number): void {
    this.#hadStream(basin, this.#seconds(createdAt), at)
  }

  /** What this engine did since it was opened, whatever was stored. */
  counters(): UsageCounters {
    return countersNow(this.#counters)
  }

  // What is told of it -----------------------------------------------------------------------------------------------

  /** Rejects with 422 `invalid` for a query that makes no sense, `storage` when the storage fails. */
  account(query: MetricsQuery<AccountMetricSet>): Promise<readonly Metric[]> {
    return this.#work.metrics.account(query)
  }

  /** Errors as for the account. A basin that does not exist has used nothing. */
  basin(basin: string, query: MetricsQuery<BasinMetricSet>): Promise<readonly Metric[]> {
    return this.#work.metrics.basin(basin, query)
  }

  /** Errors as for the account. A stream that does not exist holds nothing. */
  stream(ref: StreamRef, query: MetricsQuery<StreamMetricSet>): Promise<readonly Metric[]> {
    return this.#work.metrics.stream(ref, query)
  }

  // Upkeep -----------------------------------------------------------------------------------------------------------

  /** A bounded step of what is to be done once an hour; resolves to whether more is left. Rejects when the storage fails: call again later. */
  async maintain(): Promise<boolean> {
    return !this.#closed && this.#work.maintain()
  }

  /** Stores what was recorded; afterwards nothing is armed and nothing is stored. */
  async close(): Promise<void> {
    if (this.#closed) return this.#flushing
    this.#closed = true
    this.#cancelTimer?.()
    await this.#storeSoon(() => this.#minute()).catch(this.#engine.settings.onBackgroundError)
  }

  #add(scope: string, series: string, value: number, at: number | undefined): void {
    this.#flush.pending.add(scope, series, this.#seconds(at), value)
    this.#flushLater()
  }

  #hadStream(basin: string, since: number, at: number | undefined): void {
    const first = hourOf(since)
    this.#flush.markActive(basin, [first, Math.max(first, hourOf(this.#seconds(at)))])
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
      if (this.#flush.isDirty) await this.#flush.run(minute, this.#seconds())
    } finally {
      // Of a read that stays open something falls due every minute.
      if (this.#ticks || this.#flush.isDirty || this.#openReads.size > 0) this.#flushLater()
      else {
        this.#cancelTimer?.()
        this.#cancelTimer = undefined
      }
    }
  }

  /** Of a time in milliseconds, or of now. */
  #seconds(at = this.#engine.settings.clock.now()): number {
    return Math.floor(at / 1000)
  }

  #minute(): number {
    return alignDown(this.#seconds(), MINUTE_SECONDS)
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
