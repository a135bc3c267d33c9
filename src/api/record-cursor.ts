import type { ReadPolicy } from '../core/read-plan.ts'
import type { StreamTail } from '../model/position.ts'
import type { LATER, MaybePromise, Receiver } from '../runtime/maybe-promise.ts'
import type { ReadBatch } from '../storage/record-batch.ts'

/**
 * Shows that a waiting read is alive (docs/protocol.md "Heartbeats"): the time in milliseconds, and the tail.
 */
export interface Heartbeat {
  readonly kind: 'heartbeat'
  readonly timestamp: number
  readonly tail: StreamTail
}

/** A batch of records in bytes, or a heartbeat while the cursor waits at the tail. */
export type ReadEvent = { readonly kind: 'batch'; readonly batch: ReadBatch } | Heartbeat

/** An open read: what sessions are made of, in the engine as in the client. */
export interface RecordCursor {
  /** Resolves to the next event, or to undefined at the end of the read. One call at a time. */
  next(): MaybePromise<ReadEvent | undefined>
  /** Does the same as `next()`, but may also return `LATER` and call `receive` with the event. */
  next(receive: Receiver<ReadEvent | undefined>): MaybePromise<ReadEvent | undefined> | typeof LATER
  /** Ends the read and frees what it holds. A pending `next` resolves to undefined. */
  close(): void
}

/** Options of a read as it reaches the engine or the client. */
export interface CursorOptions extends ReadPolicy {
  /**
   * Whether heartbeats are passed on: all, or the `first` at the tail. An engine then sets no timer for
   * others; a client passes on those of its server. False by default.
   */
  readonly heartbeats?: boolean | 'first' | undefined
  /** Creates the stream, whatever the configuration of its basin says. */
  readonly create?: boolean | undefined
  /**
   * Whether a client opens further connections when one is lost. True by default. If false, the failure is
   * reported at once. An engine ignores it.
   */
  readonly retry?: boolean | undefined
}
