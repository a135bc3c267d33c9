import { Observable } from 'rxjs'
import { HeadwaterError } from '../model/errors.ts'
import type { RecordAs, RecordFormat, TextRecord } from '../model/record.ts'
import { assertSignal, type MembersOf, oneOf } from '../model/validation.ts'
import { andThen, isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import {
  CursorIterator,
  type ReadEvent,
  type ReadSessionEvent,
  type RecordCursor,
  RecordIterator,
} from './record-cursor.ts'

export type { ReadSessionEvent }

/** Options of `read`, `follow` and `readBatch`. */
export interface ReadOptions<Format extends RecordFormat = RecordFormat> {
  /**
   * The type of bodies and headers: `'string'` (the default) decodes UTF-8 and replaces ill-formed parts by
   * U+FFFD, `'bytes'` returns them as `Uint8Array`.
   */
  readonly as?: Format | undefined
  /** Whether command records (fences and trims) are returned. True by default. */
  readonly commands?: boolean | undefined
  /** Creates a missing stream and basin instead of rejecting with `stream_not_found`. False by default. */
  readonly create?: boolean | undefined
  /** Ends the read: promises and iterations reject with the signal's reason, observables fail with it. */
  readonly signal?: AbortSignal | undefined
}

export const READ_OPTIONS: MembersOf<ReadOptions> = {
  as: oneOf(['string', 'bytes']),
  commands: 'boolean',
  create: 'boolean',
  signal: assertSignal,
}

/** Returns the error of an open read whose stream was deleted. */
export function deletedUnderReadError(): HeadwaterError {
  return new HeadwaterError('stream_deleted', 'the stream was deleted')
}

/**
 * A read of many records, made by `stream.read()` or `stream.follow()`. It is cold: each iteration and each
 * subscription is a read of its own, opened when it begins. Iteration sets the pace. Leaving the loop,
 * `return()`, unsubscribing, the signal and closing the engine free everything at once.
 *
 * Errors:
 * - `range_not_satisfiable`, with the tail, for a start beyond the tail
 * - `basin_not_found`, `stream_not_found` unless `create` is set
 * - `invalid` for a malformed query
 * - `encryption_key_invalid` when the stream is encrypted and the handle has no valid key,
 *   `decryption_failed` when it has another key
 * - `rate_limited` when too many sessions are open (`limits.openSessions`)
 * - `authn` when the access token of the session ends, `permission_denied` when it does not permit the read
 * - `stream_deleted` when the stream is deleted, `closed` when the engine is closed
 * - `storage` when the storage fails
 *
 * ```ts
 * for await (const record of stream.read()) console.log(record.body)
 * const everything = await stream.read().toArray()
 * stream.follow().records$.subscribe((record) => console.log(record.body))
 * ```
 */
export class ReadSession<
  Item = TextRecord,
  Batch extends { readonly records: readonly Item[] } = ReadBatch<'string'> & {
    readonly records: readonly Item[]
  },
> implements AsyncIterable<Item>
{
  readonly #open: (heartbeats: boolean) => Promise<RecordCursor | undefined>
  readonly #batchOf: (batch: ReadBatch) => MaybePromise<Batch>
  readonly #signal: AbortSignal | undefined

  /** @internal */
  constructor(
    open: (heartbeats: boolean) => Promise<RecordCursor | undefined>,
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

  /** Emits batches of at most 1,000 records and 1 MiB metered. */
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

  /** Iterates over batches of at most 1,000 records and 1 MiB metered. */
  batches(): AsyncGenerator<Batch, void, undefined> {
    return this.#batches()
  }

  /** Iterates over batches and heartbeats: one at the tail, then one every 5 to 15 seconds of waiting. */
  events(): AsyncGenerator<ReadSessionEvent<Batch>, void, undefined> {
    return this.#iterate(true, (event) =>
      event.kind === 'batch'
        ? andThen(this.#batchOf(event.batch), (batch) => ({ kind: 'batch', batch }))
        : event,
    )
  }

  /** Resolves to all records of a session that ends, as `stream.read()` does. Holds all of them in memory. */
  async toArray(): Promise<Item[]> {
    const items: Item[] = []
    for await (const { records } of this.batches()) for (const record of records) items.push(record)
    return items
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

/**
 * A cold observable of what an iterator yields: each subscription iterates from the beginning. Items that are
 * available are emitted in one turn. `emit` passes an item on and stops when `next` returns true, which means
 * that the subscriber has left.
 */
function observe<Item, Value>(
  iterate: () => CursorIterator<Item>,
  emit: (item: Item, next: (value: Value) => boolean) => void,
): Observable<Value> {
  return new Observable((subscriber) => {
    const iterator = iterate()
    const next = (value: Value) => {
      subscriber.next(value)
      return subscriber.closed
    }
    /** Emits an item and those available after it. Returns what to wait for; undefined at the end. */
    const emitFrom = (first: IteratorResult<Item, void>) => {
      let taken: MaybePromise<IteratorResult<Item, void>> = first
      while (!isPromise(taken)) {
        if (taken.done) {
          subscriber.complete()
          return undefined
        }
        emit(taken.value, next)
        if (subscriber.closed) return undefined
        taken = iterator.take()
      }
      return taken
    }
    const run = async () => {
      let taken: MaybePromise<IteratorResult<Item, void>> | undefined = iterator.take()
      while (taken !== undefined) taken = emitFrom(await taken)
    }
    run().catch((error: unknown) => subscriber.error(error))
    return () => void iterator.return()
  })
}

/** A read session whose records have bodies and headers in a format. */
export type SessionOf<Format extends RecordFormat> = ReadSession<RecordAs<Format>, ReadBatch<Format>>
