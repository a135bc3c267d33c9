import type { Operation } from '../../model/access.ts'
import type { StorageClass } from '../../model/config.ts'
import type { Connection } from '../context.ts'

/** Where the engine tells what was done, for the usage metrics. Calls cost next to nothing and never fail. */
export interface UsageRecorder {
  /** A control operation was done: the account's, or that of a basin or a stream in it. */
  operation(operation: Operation, basin: string | undefined): void
  /** An append is durable. */
  appended(append: AppendUsage): void
  /** A read request without a streaming response was answered. */
  unaryRead(basin: string): void
  /** Records were delivered to a reader. */
  delivered(basin: string, meteredBytes: number): void
  /** A read session was opened; it counts at once and for each further full minute that it stays open. The returned function ends it. */
  streamingRead(basin: string): () => void
  /** What a log holds has changed in another way than by an append. */
  storedChanged(logIds: readonly string[]): void
  /** A basin got a stream. */
  streamCreated(basin: string): void
  /** A basin is gone, and its name free. */
  basinDeleted(basin: string): void
  /** A basin lost a stream, which it had had since `createdAt` (milliseconds). */
  streamDeleted(basin: string, createdAt: number): void
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
