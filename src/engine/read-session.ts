import { Observable } from 'rxjs'
import type { ReadPolicy } from '../core/read-plan.ts'
import type { SequencedRecord, TextRecord } from '../model/record.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { CursorIterator } from './cursor-iterator.ts'
import type { ReadCursor, ReadEvent } from './read-cursor.ts'

export interface ReadOptions extends ReadPolicy {
  /** Ends the session: iteration throws the signal's reason, observables fail with it. */
  readonly signal?: AbortSignal | undefined
}

/**
 * A read session: history from the start that was asked for, then, unless bounded, whatever is appended. It is cold: each iteration and each
 * subscription is a read of its own, opened when it begins. Iterating sets the pace; leaving the loop, `return()`, unsubscribing, the
 * signal and closing the engine free everything at once.
 *
 * Errors: `range_not_satisfiable` with the tail where a read of the service answers 416; `basin_not_found`, `stream_not_found`; `invalid`
 * for a query without meaning; `unavailable` when the stream is deleted or the engine closed while it goes on; `storage`.
 */
export class ReadSession implements AsyncIterable<ReadBatch> {
  readonly #open: (heartbeats: boolean) => Promise<ReadCursor | undefined>
  readonly #signal: AbortSignal | undefined

  constructor(
    open: (heartbeats: boolean) => Promise<ReadCursor | undefined>,
    signal: AbortSignal | undefined,
  ) {
    this.#open = open
    this.#signal = signal
  }

  /** Batches as they come, none empty. */
  get batches$(): Observable<ReadBatch> {
    return this.#observe((batch, next) => next(batch))
  }

  /** Each record. */
  get records$(): Observable<SequencedRecord> {
    return this.#observe((batch, next) => {
      for (const record of batch.records) if (next(record)) return
    })
  }

  /** Each record, with strings. */
  get text$(): Observable<TextRecord> {
    return this.#observe((batch, next) => {
      for (const record of batch.text) if (next(record)) return
    })
  }

  [Symbol.asyncIterator](): AsyncGenerator<ReadBatch, void, undefined> {
    return this.#iterate(false, batchOf)
  }

  /** Batches, and heartbeats while waiting at the tail: one at once on reaching it, then 5 to 15 s apart. */
  events(): AsyncIterable<ReadEvent> {
    return { [Symbol.asyncIterator]: () => this.#iterate(true, (event) => event) }
  }

  #iterate<Item>(
    heartbeats: boolean,
    itemOf: (event: ReadEvent) => Item,
  ): AsyncGenerator<Item, void, undefined> {
    return new CursorIterator(() => this.#open(heartbeats), this.#signal, itemOf)
  }

  #observe<Value>(emit: (batch: ReadBatch, next: (value: Value) => boolean) => void): Observable<Value> {
    return new Observable((subscriber) => {
      const iterator = this.#iterate(false, batchOf)
      const next = (value: Value) => {
        subscriber.next(value)
        return subscriber.closed
      }
      const run = async () => {
        for await (const batch of iterator) {
          emit(batch, next)
          if (subscriber.closed) return
        }
        subscriber.complete()
      }
      run().catch((error: unknown) => subscriber.error(error))
      return () => void iterator.return()
    })
  }
}

/** Without heartbeats there is nothing but batches. */
function batchOf(event: ReadEvent): ReadBatch {
  if (event.kind !== 'batch') throw new TypeError('a heartbeat nobody asked for')
  return event.batch
}
