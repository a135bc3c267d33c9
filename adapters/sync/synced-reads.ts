import type { Observable } from 'rxjs'
import type { CallOptions } from '../../src/api/call-options.ts'
import type { Stream } from '../../src/api/stream.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { isPromise } from '../../src/runtime/maybe-promise.ts'
import { Observable as ObservableClass } from '../../src/runtime/observable.ts'
import type { ChangeSource, NumberedItem, StreamChange } from '../../src/sync/changes.ts'
import { RecordView } from '../../src/sync/record-view.ts'
import type { SyncedRecord } from '../../src/sync/synced-record.ts'
import { ChangeReader, type RecordChange } from './change-reader.ts'
import { type ContentCodec, confirmedRecords, PendingRecords } from './content.ts'
import type { PendingSource } from './pending-source.ts'
import { SyncedRead } from './synced-read.ts'

/** A change of a synced stream. */
export interface SyncedChange<Content> extends StreamChange<SyncedRecord<Content>, SyncedRecord<Content>> {
  /** Records below this sequence number were trimmed; undefined if the change trims nothing. */
  readonly trimmedTo: number | undefined
}

/** The reads of a synced stream in one form: text, bytes or JSON. */
export abstract class SyncedReads<Content extends object>
  implements ChangeSource<SyncedRecord<Content>, SyncedRecord<Content>>
{
  readonly #local: Stream
  readonly #source: PendingSource
  readonly #codec: ContentCodec<Content>
  readonly #pending: PendingRecords<Content>

  /** @internal */
  constructor(local: Stream, source: PendingSource, codec: ContentCodec<Content>) {
    this.#local = local
    this.#source = source
    this.#codec = codec
    this.#pending = new PendingRecords(codec)
  }

  /** @internal The copy on this device, beside which folds store their snapshots. */
  get stored(): Stream {
    return this.#local
  }

  /**
   * Emits the stream as a list: the confirmed records and then the pending ones, from the first record on.
   * Each view has the change since the one before.
   *
   * ```ts
   * chat.view$.subscribe(({ change }) => rows.splice(change.index, change.removed, ...change.inserted))
   * ```
   */
  get view$(): Observable<RecordView<SyncedRecord<Content>>> {
    return this.view({ seqNum: 0 })
  }

  /** Emits what `view$` emits, from the start that the query gives: by default the first record. */
  view(query: ReadQuery = { seqNum: 0 }): Observable<RecordView<SyncedRecord<Content>>> {
    return new ObservableClass((subscriber) => {
      const subscription = new AbortController()
      const emit = async () => {
        let view = RecordView.empty<SyncedRecord<Content>>()
        for await (const change of this.changes(query, subscription)) {
          const { isReset, confirmed, pending, trimmedTo, isCaughtUp } = change
          if (isReset) {
            view = RecordView.empty(view)
            subscriber.next(view)
          }
          view = view.next(confirmed, pending.map(itemOf), isCaughtUp)
          subscriber.next(view)
          const trimmed = trimmedTo === undefined ? 0 : countBelow(view, trimmedTo)
          if (trimmed === 0) continue
          view = view.withoutFirst(trimmed)
          subscriber.next(view)
        }
      }
      emit().then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      )
      return () => subscription.abort()
    })
  }

  /**
   * Reads what is stored on this device: the confirmed records in the order of the server, then the pending
   * ones, marked as pending, and then ends. Iterate over it, or call its `toArray()`.
   *
   * ```ts
   * for await (const { body, isPending } of chat.read({ tailOffset: 100 })) console.log(body, isPending)
   * ```
   */
  read(query: ReadQuery = { seqNum: 0 }, { signal }: CallOptions = {}): SyncedRead<SyncedRecord<Content>> {
    return new SyncedRead(() => this.#read(query, signal))
  }

  async *#read(
    query: ReadQuery,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<SyncedRecord<Content>, void, undefined> {
    for await (const { confirmed, pending, isCaughtUp } of this.changes(query, { signal })) {
      yield* confirmed
      if (!isCaughtUp) continue
      yield* pending.map(itemOf)
      return
    }
    signal?.throwIfAborted()
  }

  /** Iterates over changes, as {@link ChangeSource} describes, from a sequence number or another start on. */
  async *changes(
    from: number | ReadQuery,
    { signal }: CallOptions,
  ): AsyncGenerator<SyncedChange<Content>, void, undefined> {
    const query = typeof from === 'number' ? { seqNum: from } : from
    const reader = new ChangeReader(this.#local, this.#source, query, signal)
    try {
      for (let change = await reader.next(); change !== undefined; change = await reader.next()) {
        yield await this.#converted(change)
      }
    } finally {
      reader.close()
    }
  }

  async #converted(change: RecordChange): Promise<SyncedChange<Content>> {
    const pending: NumberedItem<SyncedRecord<Content>>[] = []
    for (const { number, item } of change.pending) {
      const records = this.#pending.of(item, this.#source.device!, number)
      // Thousands may wait, and most have been converted before.
      for (const record of isPromise(records) ? await records : records)
        pending.push({ number, item: record })
    }
    const confirmed = await confirmedRecords(change.confirmed, this.#codec)
    return { ...change, confirmed, pending, trimmedTo: trimOf(change.confirmed) }
  }
}

function itemOf<Item>({ item }: NumberedItem<Item>): Item {
  return item
}

/** Returns the furthest trim among records. A trim reaches the command itself at most. */
function trimOf(records: readonly SequencedRecord[]): number | undefined {
  let trimmedTo: number | undefined
  for (const { seqNum, command } of records) {
    if (command?.kind !== 'trim') continue
    trimmedTo = Math.max(trimmedTo ?? 0, Math.min(command.seqNum, seqNum + 1))
  }
  return trimmedTo
}

/** Returns how many of the confirmed records of a view lie below a sequence number. */
function countBelow<Content>(view: RecordView<SyncedRecord<Content>>, seqNum: number): number {
  let [low, high] = [0, view.confirmedLength]
  while (low < high) {
    const middle = (low + high) >> 1
    if (view.at(middle)!.seqNum! < seqNum) low = middle + 1
    else high = middle
  }
  return low
}
