import { GROUP_OF } from '../core/permission.ts'
import { ACTIVE, alignDown, MINUTE_SECONDS, STORED_BYTES, seriesName } from '../core/usage/resolutions.ts'
import type {
  AppendUsage,
  MetricsService,
  UsageContext,
  UsageCounters,
  UsageMeter,
} from '../engine/service/usage.ts'
import type { Operation } from '../model/access.ts'
import { macrotask } from '../runtime/macrotask.ts'
import { SerialQueue } from '../runtime/serial-queue.ts'
import { newCounters, snapshotCounters } from './counters.ts'
import { ACCOUNT, basinScope } from './documents.ts'
import { UsageFlush } from './flush.ts'
import { UsageMetrics } from './metrics-query.ts'
import { AppendOperations, OpenReads } from './open-activity.ts'
import { UsageUpkeep } from './upkeep.ts'

const UNARY_READS = seriesName('read-ops', 'unary')
const STREAMING_READS = seriesName('read-ops', 'streaming')
const READ_BYTES = seriesName('read-throughput', 'read_bytes')

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
  readonly #upkeep: UsageUpkeep
  readonly #counters = newCounters()
  readonly #appendOperations = new AppendOperations()
  readonly #openReads: OpenReads
  readonly #flushes = new SerialQueue()
  /** A flush that has been requested and not begun. */
  #nextFlush: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  #isStarted = false
  #isClosed = false

  constructor(context: UsageContext) {
    this.#context = context
    this.#flush = new UsageFlush(context)
    this.#upkeep = new UsageUpkeep(context)
    this.metrics = new UsageMetrics(context, {
      flush: () => this.#requestFlush(() => this.#minute()),
      sample: async () => {
        while (await this.#upkeep.step()) await macrotask()
      },
    })
    this.#openReads = new OpenReads((basin, minute) =>
      this.#flush.pending.add(basinScope(basin), STREAMING_READS, minute, 1),
    )
  }

  operation(operation: Operation, basin: string | undefined): void {
    const { operations } = this.#counters
    operations[operation] = (operations[operation] ?? 0) + 1
    if (basin === undefined || GROUP_OF[operation][0] === 'account') {
      this.#add(ACCOUNT, seriesName('account-ops', operation), 1)
    } else {
      this.#add(basinScope(basin), seriesName('basin-ops', operation), 1)
    }
  }

  appended({ basin, logId, storageClass, connection, at, ...append }: AppendUsage): void {
    const counters = this.#counters
    counters.appends++
    counters.appendQueueSeconds.observe(append.queueMs / 1000)
    counters.appendAckSeconds.observe(append.ackMs / 1000)
    counters.appendBatchRecords.observe(append.records)
    counters.appendBatchBytes.observe(append.meteredBytes)
    counters.appendedRecords += append.records
    counters.appendedBytes += append.meteredBytes
    const { pending, changedLogs } = this.#flush
    const scope = basinScope(basin)
    const minute = alignDown(at / 1000, MINUTE_SECONDS)
    pending.add(scope, seriesName('append-throughput', storageClass), minute, append.meteredBytes)
    if (this.#appendOperations.begins(logId, connection, minute)) {
      pending.add(scope, seriesName('append-ops', storageClass), minute, 1)
    }
    changedLogs.add(logId)
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
    this.#add(basinScope(basin), ACTIVE, 1)
  }

  streamDeleted(basin: string): void {
    this.#add(basinScope(basin), ACTIVE, 1)
  }

  /** Otherwise queries would report the last measurement forever. */
  basinDeleted(basin: string): void {
    this.#add(basinScope(basin), STORED_BYTES, 0)
  }

  counters(): UsageCounters {
    return snapshotCounters(this.#counters)
  }

  async maintain(): Promise<boolean> {
    return !this.#isClosed && this.#upkeep.step()
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

  #add(scope: string, series: string, value: number): void {
    this.#flush.pending.add(scope, series, this.#seconds(), value)
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
      // Counted here as well, because a storage that hangs delays the flush itself.
      this.#openReads.count(clock.now())
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

  async #store(minute: number): Promise<void> {
    this.#openReads.count(this.#context.clock.now())
    try {
      if (this.#flush.isDirty) await this.#flush.run(minute)
    } finally {
      // An open read accrues usage every minute.
      if (this.#isStarted || this.#flush.isDirty || this.#openReads.size > 0) this.#scheduleFlush()
      else {
        this.#cancelTimer?.()
        this.#cancelTimer = undefined
      }
    }
  }

  #seconds(): number {
    return Math.floor(this.#context.clock.now() / 1000)
  }

  #minute(): number {
    return alignDown(this.#seconds(), MINUTE_SECONDS)
  }
}
