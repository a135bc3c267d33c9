import { GROUP_OF } from '../core/permission.ts'
import { hourOf } from '../core/usage/sampling.ts'
import { alignDown, MINUTE_SECONDS, seriesName } from '../core/usage/tiers.ts'
import type {
  AppendUsage,
  HistogramCounts,
  MetricsService,
  UsageContext,
  UsageCounters,
  UsageMeter,
} from '../engine/service/usage.ts'
import type { Operation } from '../model/operations.ts'
import { macrotask } from '../runtime/macrotask.ts'
import { SerialQueue } from '../runtime/serial-queue.ts'
import { ACCOUNT, basinScope } from './documents.ts'
import { UsageFlush } from './flush.ts'
import { UsageMetrics } from './metrics-query.ts'
import { OpenReads, RecentAppends } from './open-activity.ts'
import { RollUp } from './roll-up.ts'
import { Sampling } from './sampling.ts'

/**
 * Records the usage of an engine, stores it and answers metrics queries (docs/protocol.md "Usage metrics").
 * Recorded usage is stored once a minute, on close and before a query, so that a crash loses at most a
 * minute. Usage that the storage rejects is kept and stored later. Failures go to `onBackgroundError` and
 * never affect an append or a read.
 */
export class StoredUsageMeter implements UsageMeter {
  readonly metrics: MetricsService
  readonly #context: UsageContext
  readonly #flush: UsageFlush
  readonly #rollUp: RollUp
  readonly #sampling: Sampling
  readonly #counters = newCounters()
  readonly #recentAppends: RecentAppends
  readonly #openReads: OpenReads
  /** Bounded steps of roll-up and sampling, one at a time. */
  readonly #maintenance = new SerialQueue()
  readonly #flushes = new SerialQueue()
  /** A flush that has been requested and not begun. */
  #nextFlush: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  #isStarted = false
  #isClosed = false

  constructor(context: UsageContext) {
    this.#context = context
    this.#flush = new UsageFlush(context)
    this.#rollUp = new RollUp(context)
    this.#sampling = new Sampling(context)
    this.metrics = new UsageMetrics(context, {
      flush: () => this.#requestFlush(() => this.#minute()),
      rollUp: () => this.#runToEnd(() => this.#rollUp.step()),
      sample: () => this.#runToEnd(() => this.#sampling.step(true)),
    })
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

  operation(operation: Operation, basin: string | undefined): void {
    const { operations } = this.#counters
    operations[operation] = (operations[operation] ?? 0) + 1
    if (basin === undefined || GROUP_OF[operation][0] === 'account')
      this.#add(ACCOUNT, seriesName('account-ops', operation), 1)
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
    this.#scheduleFlush()
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
    const { clock } = this.#context
    this.#counters.streamingReads++
    const end = this.#openReads.begin(basin, clock.now())
    this.#scheduleFlush()
    return () => end(clock.now())
  }

  storedChanged(logIds: readonly string[]): void {
    for (const logId of logIds) this.#flush.changedLogs.add(logId)
    this.#scheduleFlush()
  }

  streamCreated(basin: string): void {
    this.#markActive(basin, this.#seconds())
  }

  streamDeleted(basin: string, createdAt: number): void {
    this.#markActive(basin, this.#seconds(createdAt))
  }

  basinDeleted(basin: string): void {
    this.#flush.markDeleted(basin, this.#seconds())
    this.#scheduleFlush()
  }

  counters(): UsageCounters {
    return snapshotCounters(this.#counters)
  }

  async maintain(): Promise<boolean> {
    if (this.#isClosed) return false
    const hasMore = await this.#maintenance.run(() => this.#rollUp.step())
    return hasMore || this.#maintenance.run(() => this.#sampling.step(false))
  }

  start(): void {
    this.#isStarted = true
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#scheduleFlush()
  }

  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.#cancelTimer?.()
      await this.#requestFlush(() => this.#minute()).catch(this.#context.onBackgroundError)
    }
    await this.#flushes.run(async () => {})
  }

  async #runToEnd(step: () => Promise<boolean>): Promise<void> {
    while (await this.#maintenance.run(step)) await macrotask()
  }

  #add(scope: string, series: string, value: number): void {
    this.#flush.pending.add(scope, series, this.#seconds(), value)
    this.#scheduleFlush()
  }

  #markActive(basin: string, since: number): void {
    const first = hourOf(since)
    this.#flush.markActive(basin, [first, Math.max(first, hourOf(this.#seconds()))])
    this.#scheduleFlush()
  }

  #scheduleFlush(): void {
    if (this.#cancelTimer !== undefined || this.#isClosed) return
    const { clock, onBackgroundError } = this.#context
    const minuteMs = MINUTE_SECONDS * 1000
    const minute = this.#minute()
    const run = () => {
      this.#cancelTimer = undefined
      if (this.#isStarted) this.#scheduleFlush()
      // Reported here as well, because a storage that hangs delays the flush itself.
      this.#reportAccrued()
      // The measured sizes belong to the minute that just ended. Timers may fire late, or slightly early.
      void this.#requestFlush(() => Math.max(minute, this.#minute() - MINUTE_SECONDS)).catch(
        onBackgroundError,
      )
    }
    this.#cancelTimer = clock.schedule(minuteMs - (clock.now() % minuteMs), run, { background: true })
  }

  /**
   * Stores everything recorded so far, and sizes under `minute()`. Calls made before the flush begins share
   * it.
   */
  #requestFlush(minute: () => number): Promise<void> {
    this.#nextFlush ??= this.#flushes.run(() => {
      this.#nextFlush = undefined
      return this.#store(minute())
    })
    return this.#nextFlush
  }

  /** Records the usage that accrues with time. */
  #reportAccrued(): void {
    const now = this.#context.clock.now()
    this.#openReads.report(now)
    this.#recentAppends.report(now)
  }

  async #store(minute: number): Promise<void> {
    this.#reportAccrued()
    try {
      if (this.#flush.isDirty) await this.#flush.run(minute, this.#seconds())
    } finally {
      // An open read accrues usage every minute.
      if (this.#isStarted || this.#flush.isDirty || this.#openReads.size > 0) this.#scheduleFlush()
      else {
        this.#cancelTimer?.()
        this.#cancelTimer = undefined
      }
    }
  }

  #seconds(milliseconds = this.#context.clock.now()): number {
    return Math.floor(milliseconds / 1000)
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

type HistogramName = 'appendPermitSeconds' | 'appendAckSeconds' | 'appendBatchRecords' | 'appendBatchBytes'

type MutableCounters = {
  -readonly [Name in keyof Omit<UsageCounters, 'operations' | HistogramName>]: UsageCounters[Name]
} & { readonly operations: Partial<Record<Operation, number>> } & Readonly<Record<HistogramName, Histogram>>

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const RECORDS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]
const BYTES = [128, 512, 2048, 8192, 32_768, 131_072, 524_288, 1_048_576]

function newCounters(): MutableCounters {
  return {
    operations: {},
    appends: 0,
    appendedRecords: 0,
    appendedBytes: 0,
    readBatches: 0,
    readBytes: 0,
    unaryReads: 0,
    streamingReads: 0,
    appendPermitSeconds: new Histogram(SECONDS),
    appendAckSeconds: new Histogram(SECONDS),
    appendBatchRecords: new Histogram(RECORDS),
    appendBatchBytes: new Histogram(BYTES),
  }
}

function snapshotCounters(counters: MutableCounters): UsageCounters {
  return {
    ...counters,
    operations: { ...counters.operations },
    appendPermitSeconds: counters.appendPermitSeconds.counts,
    appendAckSeconds: counters.appendAckSeconds.counts,
    appendBatchRecords: counters.appendBatchRecords.counts,
    appendBatchBytes: counters.appendBatchBytes.counts,
  }
}

class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#sum += value
  }

  get counts(): HistogramCounts {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#sum }
  }
}
