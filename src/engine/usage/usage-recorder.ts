import type { StorageClass } from '../../model/config.ts'
import type { Operation } from '../../model/operations.ts'
import type { Connection } from '../context.ts'

/**
 * Where the engine tells what was done, for the usage metrics. Calls cost next to nothing and never fail. What is told late says when it was, in
 * milliseconds; else it is now.
 */
export interface UsageRecorder {
  /** A control operation was done: the account's, or that of a basin or a stream in it. */
  operation(operation: Operation, basin: string | undefined, at?: number): void
  /** An append is durable. */
  appended(append: AppendUsage): void
  /** A read request without a streaming response was answered. */
  unaryRead(basin: string, at?: number): void
  /** Records were delivered to a reader. */
  delivered(basin: string, meteredBytes: number, at?: number): void
  /** A read session was opened; it counts at once and for each further full minute that it stays open. The returned function ends it. */
  streamingRead(basin: string, at?: number): (endedAt?: number) => void
  /** What a log holds has changed in another way than by an append. */
  storedChanged(logIds: readonly string[]): void
  /** A basin got a stream. */
  streamCreated(basin: string, at?: number): void
  /** A basin is gone, and its name free. */
  basinDeleted(basin: string, at?: number): void
  /** A basin lost a stream, which it had had since `createdAt` (milliseconds). */
  streamDeleted(basin: string, createdAt: number, at?: number): void
}

export interface AppendUsage {
  readonly basin: string
  readonly logId: string
  readonly storageClass: StorageClass
  readonly records: number
  readonly meteredBytes: number
  readonly connection: Connection
  /** When it was durable, milliseconds. */
  readonly at: number
  /** How long it waited for room among the bytes in flight. */
  readonly permitMs: number
  /** How long from then until it was durable. */
  readonly ackMs: number
}
