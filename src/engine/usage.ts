import type { Operation } from '../model/access.ts'
import type { StorageClass } from '../model/config.ts'
import { HeadwaterError } from '../model/errors.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricsQuery,
  StreamMetricSet,
} from '../model/metrics.ts'
import type { StreamRef } from '../model/names.ts'
import type { Clock } from '../runtime/clock.ts'
import type { StorageSession } from '../storage/contract.ts'

/** Identifies a connection, by which usage metrics count appends: any object, compared by identity. */
export type UsageConnection = object

/** Meters what an engine does, if it is given to `open`: `usageMetrics()` of `headwater/usage`. */
export interface UsageModule {
  /** Called once by `open`. */
  open(needs: UsageContext): UsageMeter
}

/** The parts of an engine that a usage module uses. */
export interface UsageContext {
  /** Rejects with `HeadwaterError`, or `StorageConflict` for a condition that does not hold. */
  readonly session: StorageSession
  readonly clock: Clock
  /** Receives failures that no call reports. */
  readonly onBackgroundError: (error: unknown) => void
}

/** An append that became durable. */
export interface AppendUsage {
  readonly basin: string
  readonly logId: string
  readonly storageClass: StorageClass
  readonly records: number
  readonly meteredBytes: number
  readonly connection: UsageConnection
  /** The time at which the append became durable, in milliseconds. */
  readonly at: number
  /** Milliseconds in the queue: the bytes of unfinished appends are limited. */
  readonly queueMs: number
  /** Milliseconds from then until it became durable. */
  readonly ackMs: number
}

/**
 * Records usage, stores it, and answers queries. The calls that record are cheap and synchronous, and never
 * throw.
 */
export interface UsageMeter {
  /** An operation succeeded, in the basin if it is not an operation of the account. */
  operation(operation: Operation, basin: string | undefined): void
  /** An append became durable. */
  appended(append: AppendUsage): void
  /** A unary read was answered. */
  unaryRead(basin: string): void
  /** Records were delivered to a reader. */
  delivered(basin: string, meteredBytes: number): void
  /**
   * A read session was opened. It counts at once and once more for each full minute it stays open. Returns
   * the function that ends it.
   */
  streamingRead(basin: string): () => void
  /** The size of these logs changed other than by an append. */
  storedChanged(logIds: readonly string[]): void
  /** A stream of the basin was created or deleted: the basin has or had one now. */
  basinActive(basin: string): void
  /** The deletion of a basin is complete. */
  basinDeleted(basin: string): void
  readonly metrics: MetricsService
  /** Totals since the engine was opened. */
  counters(): UsageCounters
  /** Starts what is done each minute and each hour. A further call replaces lost timers. */
  start(): void
  /** Stores what was recorded and stops. */
  close(): Promise<void>
}

/** Answers metrics queries. Rejects with `invalid` for a malformed query, `storage` if the storage fails. */
export interface MetricsService {
  account(query: MetricsQuery<AccountMetricSet>): Promise<readonly Metric[]>
  /** Returns the usage of a basin; no values if it does not exist. */
  basin(basin: string, query: MetricsQuery<BasinMetricSet>): Promise<readonly Metric[]>
  /** Returns the usage of a stream; no values if it does not exist. */
  stream(ref: StreamRef, query: MetricsQuery<StreamMetricSet>): Promise<readonly Metric[]>
}

/** Totals of what one engine did since it was opened. All bytes are metered bytes. */
export interface UsageCounters {
  /** Successful control operations by name. Operations that never ran are absent. */
  readonly operations: Readonly<Partial<Record<Operation, number>>>
  /** Appends that became durable. */
  readonly appends: number
  /** Records that became durable. */
  readonly appendedRecords: number
  /** Bytes that became durable. */
  readonly appendedBytes: number
  readonly readBatches: number
  readonly readBytes: number
  readonly unaryReads: number
  readonly streamingReads: number
  /** Seconds that appends were in the queue, because the bytes of unfinished appends are limited. */
  readonly appendQueueSeconds: HistogramCounts
  /** Seconds from then until they were durable. */
  readonly appendAckSeconds: HistogramCounts
  readonly appendBatchRecords: HistogramCounts
  readonly appendBatchBytes: HistogramCounts
}

/** A histogram with fixed buckets. */
export interface HistogramCounts {
  /** Inclusive upper bounds, ascending; one bucket without a bound follows. */
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}

const nothing = (): void => {}
const unavailable = async (): Promise<never> => {
  throw usageUnavailable()
}

export const NO_USAGE: UsageModule = {
  open: () => ({
    operation: nothing,
    appended: nothing,
    unaryRead: nothing,
    delivered: nothing,
    streamingRead: () => nothing,
    storedChanged: nothing,
    basinActive: nothing,
    basinDeleted: nothing,
    metrics: { account: unavailable, basin: unavailable, stream: unavailable },
    counters: () => {
      throw usageUnavailable()
    },
    start: nothing,
    close: async () => {},
  }),
}

function usageUnavailable(): HeadwaterError {
  return new HeadwaterError(
    'unsupported',
    'usage is not metered: open the engine with `usage: usageMetrics()` from `headwater/usage`',
  )
}
