import { ACTIVE, alignDown, MINUTE_SECONDS, STORED_BYTES, seriesName } from '../core/usage/resolutions.ts'
import type { AppendUsage, MetricsService, UsageContext, UsageCounters, UsageMeter } from '../engine/usage.ts'
import { GROUP_OF, type Operation } from '../model/access.ts'
import { macrotask } from '../runtime/macrotask.ts'
import { SerialQueue } from '../runtime/queues.ts'
import { UsageMetrics } from './metrics-query.ts'
import { AppendOperations, OpenReads } from './open-activity.ts'
import { UsageUpkeep } from './upkeep.ts'
import { ACCOUNT, basinScope, logScope, UnstoredUsage } from './usage-store.ts'

const UNARY_READS = seriesName('read-ops', 'unary')
const STREAMING_READS = seriesName('read-ops', 'streaming')
const READ_BYTES = seriesName('read-throughput', 'read_bytes')

const MINUTE_MS = MINUTE_SECONDS * 1000
const LOGS_PER_COMMIT = 30

/**
 * Records the usage of an engine, stores it and answers metrics queries (docs/protocol.md "Usage metrics").
 * Recorded usage is stored once a minute, on close and before a query, so that a crash loses at most a
 * minute. Usage that the storage rejects is kept and stored later. Failures go to `onBackgroundError` and
 * never affect an append or a read.
 */
export class StoredUsageMeter implements UsageMeter {
  readonly metrics: MetricsService
  readonly #context: UsageContext
  readonly #counters = newCounters()
  readonly #unstored = new UnstoredUsage()
  /** The logs whose size changed since it was stored. */
  readonly #changedLogs = new Set<string>()
  readonly #appendOperations = new AppendOperations()
  readonly #openReads: OpenReads
  readonly #flushes = new SerialQueue()
  readonly #upkeep: UsageUpkeep
  #upkeepRun: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  #isClosed = false

  constructor(context: UsageContext) {
    this.#context = context
    this.#upkeep = new UsageUpkeep(context)
    this.metrics = new UsageMetrics(context, {
      flush: () => this.#flush(this.#seconds()),
      sample: () => this.#runUpkeep(),
    })
    this.#openReads = new OpenReads((basin, minute) =>
      this.#unstored.add(basinScope(basin), STREAMING_READS, minute, 1),
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
    observe(counters.appendQueueSeconds, append.queueMs / 1000)
    observe(counters.appendAckSeconds, append.ackMs / 1000)
    observe(counters.appendBatchRecords, append.records)
    observe(counters.appendBatchBytes, append.meteredBytes)
    counters.appendedRecords += append.records
    counters.appendedBytes += append.meteredBytes
    const scope = basinScope(basin)
    const minute = alignDown(at / 1000, MINUTE_SECONDS)
    this.#unstored.add(scope, seriesName('append-throughput', storageClass), minute, append.meteredBytes)
    if (this.#appendOperations.begins(logId, connection, minute)) {
      this.#unstored.add(scope, seriesName('append-ops', storageClass), minute, 1)
    }
    this.#changedLogs.add(logId)
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
    return () => end(clock.now())
  }

  storedChanged(logIds: readonly string[]): void {
    for (const logId of logIds) this.#changedLogs.add(logId)
  }

  basinActive(basin: string): void {
    this.#add(basinScope(basin), ACTIVE, 1)
  }

  /** Otherwise queries would report the last measurement forever. */
  basinDeleted(basin: string): void {
    this.#add(basinScope(basin), STORED_BYTES, 0)
  }

  counters(): UsageCounters {
    return structuredClone(this.#counters)
  }

  start(): void {
    this.#cancelTimer?.()
    this.#upkeepRun = undefined
    this.#schedule()
    this.#upkeepInBackground()
  }

  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.#cancelTimer?.()
      await this.#upkeepRun
      await this.#flush(this.#seconds()).catch(this.#context.onBackgroundError)
    }
    await this.#flushes.run(async () => {})
  }

  #add(scope: string, series: string, value: number): void {
    this.#unstored.add(scope, series, this.#seconds(), value)
  }

  #schedule(): void {
    const { clock, onBackgroundError } = this.#context
    const run = () => {
      this.#schedule()
      // The sizes belong to the minute that ends. The timer may fire a little early or late.
      this.#flush(this.#seconds() - MINUTE_SECONDS / 2).catch(onBackgroundError)
      this.#upkeepInBackground()
    }
    this.#cancelTimer = clock.schedule(MINUTE_MS - (clock.now() % MINUTE_MS), run, { background: true })
  }

  /** Stores what is recorded by now, and the sizes of changed logs under `measuredAt`, in seconds. */
  #flush(measuredAt: number): Promise<void> {
    // Not in the queue, where a storage that hangs would delay it.
    this.#openReads.count(this.#context.clock.now())
    return this.#flushes.run(async () => {
      await this.#unstored.store(this.#context.session)
      await this.#storeSizes(measuredAt)
    })
  }

  async #storeSizes(measuredAt: number): Promise<void> {
    const { session } = this.#context
    const changed = [...this.#changedLogs]
    for (let start = 0; start < changed.length; start += LOGS_PER_COMMIT) {
      const logIds = changed.slice(start, start + LOGS_PER_COMMIT)
      // Removed first, so that logs that change during the measurement are measured again.
      for (const logId of logIds) this.#changedLogs.delete(logId)
      try {
        const sizes = await session.measure(logIds)
        const usage = new UnstoredUsage()
        for (const [index, logId] of logIds.entries()) {
          usage.add(logScope(logId), STORED_BYTES, measuredAt, sizes[index]!)
        }
        await usage.store(session)
      } catch (error) {
        for (const logId of logIds) this.#changedLogs.add(logId)
        throw error
      }
    }
  }

  #upkeepInBackground(): void {
    const { onBackgroundError } = this.#context
    this.#upkeepRun ??= this.#runUpkeep()
      .catch(onBackgroundError)
      .finally(() => {
        this.#upkeepRun = undefined
      })
  }

  async #runUpkeep(): Promise<void> {
    for await (const _ of this.#upkeep.run()) {
      if (this.#isClosed) return
      await macrotask()
    }
  }

  #seconds(): number {
    return Math.floor(this.#context.clock.now() / 1000)
  }
}

// Counters

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const RECORDS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]
const BYTES = [128, 512, 2048, 8192, 32_768, 131_072, 524_288, 1_048_576]

/** The counters of an engine, as `UsageCounters` that can be changed. */
function newCounters() {
  return {
    operations: {} as Partial<Record<Operation, number>>,
    appends: 0,
    appendedRecords: 0,
    appendedBytes: 0,
    readBatches: 0,
    readBytes: 0,
    unaryReads: 0,
    streamingReads: 0,
    appendQueueSeconds: newHistogram(SECONDS),
    appendAckSeconds: newHistogram(SECONDS),
    appendBatchRecords: newHistogram(RECORDS),
    appendBatchBytes: newHistogram(BYTES),
  }
}

function newHistogram(bounds: readonly number[]) {
  return { bounds, counts: new Array<number>(bounds.length + 1).fill(0), sum: 0 }
}

function observe(histogram: ReturnType<typeof newHistogram>, value: number): void {
  const { bounds, counts } = histogram
  const found = bounds.findIndex((bound) => value <= bound)
  counts[found === -1 ? bounds.length : found]!++
  histogram.sum += value
}
