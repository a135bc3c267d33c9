import type { Observable } from 'rxjs'
import type { StreamPosition } from '../../model/position.ts'
import type { RecordAs, RecordFormat } from '../../model/record.ts'
import { assertSignal, type MembersOf, oneOf } from '../../model/validation.ts'
import { andThen, type MaybePromise } from '../../runtime/maybe-promise.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import type { ReadCursor, ReadEvent } from '../log/read-cursor.ts'
import { CursorIterator, RecordIterator } from './cursor-iterator.ts'
import { observe } from './observables.ts'

/** Options of `read` and `readSession`. */
export interface ReadOptions<Format extends RecordFormat = RecordFormat> {
  /**
   * The type of bodies and headers: `'string'` (the default) decodes UTF-8 and replaces ill-formed parts by
   * U+FFFD, `'bytes'` returns them as `Uint8Array`.
   */
  readonly as?: Format | undefined
  /** Ends the read: promises and iterations reject with the signal's reason, observables fail with it. */
  readonly signal?: AbortSignal | undefined
}

/** The members of {@link ReadOptions}. */
export const READ_OPTIONS: MembersOf<ReadOptions> = { as: oneOf(['string', 'bytes']), signal: assertSignal }

/** An event of a session: a batch, or a heartbeat while it waits at the tail. */
export type RecordSessionEvent<Batch> =
  | { readonly kind: 'batch'; readonly batch: Batch }
  | {
      readonly kind: 'heartbeat'
      /** Milliseconds since the Unix epoch. */
      readonly timestamp: number
      readonly tail: StreamPosition
    }

/**
 * A read session: history from the start of the query, then, unless the query is bounded, records as they are
 * appended. It is cold: each iteration and each subscription is a read of its own, opened when it begins.
 * Iteration sets the pace. Leaving the loop, `return()`, unsubscribing, the signal and closing the engine
 * free everything at once.
 *
 * Errors:
 * - `range_not_satisfiable`, with the tail, for a start beyond the tail, or if no record is available and the
 *   session does not wait
 * - `basin_not_found`, `stream_not_found` where the session may not create the stream
 * - `invalid` for a malformed query
 * - `bad_header` when the stream is encrypted and the handle has no valid key, `decryption_failed` when it
 *   has another key
 * - `rate_limited` when too many sessions are open (`limits.openSessions`), or when the read makes no
 *   progress while `limits.readBufferBytes` is used up
 * - `authn` when the access token of the session ends, `permission_denied` when it does not permit the read
 * - `unavailable` when the stream is deleted or the engine is closed
 * - `storage` when the storage fails
 */
export class RecordSession<Item, Batch extends { readonly records: readonly Item[] }>
  implements AsyncIterable<Item>
{
  readonly #open: (heartbeats: boolean) => Promise<ReadCursor | undefined>
  readonly #batchOf: (batch: ReadBatch) => MaybePromise<Batch>
  readonly #signal: AbortSignal | undefined

  /** @internal */
  constructor(
    open: (heartbeats: boolean) => Promise<ReadCursor | undefined>,
    batchOf: (batch: ReadBatch) => MaybePromise<Batch>,
    signal: AbortSignal | undefined,
  ) {
    this.#open = open
    this.#batchOf = batchOf
    this.#signal = signal
  }

  /** Emits each record. */
  get records$(): Observable<Item> {
    return observe(
      () => this.#batches(),
      (batch, next) => {
        for (const record of batch.records) if (next(record)) return
      },
    )
  }

  /** Emits batches of 1 to 1,000 records, at most 1 MiB metered. */
  get batches$(): Observable<Batch> {
    return observe(
      () => this.#batches(),
      (batch, next) => next(batch),
    )
  }

  /** Iterates over the records. */
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    return new RecordIterator(this.batches(), this.#signal)
  }

  /** Iterates over batches of 1 to 1,000 records, at most 1 MiB metered. */
  batches(): AsyncGenerator<Batch, void, undefined> {
    return this.#batches()
  }

  /**
   * Iterates over batches and heartbeats: one heartbeat on reaching the tail, then one every 5 to 15 seconds
   * while waiting there.
   */
  events(): AsyncGenerator<RecordSessionEvent<Batch>, void, undefined> {
    return this.#iterate(true, (event) =>
      event.kind === 'batch'
        ? andThen(this.#batchOf(event.batch), (batch) => ({ kind: 'batch', batch }))
        : event,
    )
  }

  #batches(): CursorIterator<Batch> {
    return this.#iterate(false, (event) => {
      if (event.kind !== 'batch') throw new TypeError('unexpected heartbeat')
      return this.#batchOf(event.batch)
    })
  }

  #iterate<Yielded>(
    heartbeats: boolean,
    itemOf: (event: ReadEvent) => MaybePromise<Yielded>,
  ): CursorIterator<Yielded> {
    return new CursorIterator(() => this.#open(heartbeats), this.#signal, itemOf)
  }
}

/** An event of a `ReadSession`: a batch, or a heartbeat while it waits at the tail. */
export type SessionEvent<Format extends RecordFormat> = RecordSessionEvent<ReadBatch<Format>>

/** A read session whose records have bodies and headers in a format. */
export type ReadSession<Format extends RecordFormat = 'string'> = RecordSession<
  RecordAs<Format>,
  ReadBatch<Format>
>
