import { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { historyQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { onAnyAbort } from '../../src/runtime/abort.ts'
import type { ChangeSource } from '../../src/sync/changes.ts'
import { codeOf } from '../../src/sync/failures.ts'
import type { MirrorState } from '../../src/sync/mirror.ts'
import { RecordView } from '../../src/sync/record-view.ts'
import type { SyncedRecord } from '../../src/sync/synced-record.ts'
import type { Mirror } from './mirror.ts'
import type { Outbox } from './outbox.ts'
import { type ContentCodec, type SyncedChange, SyncedChanges } from './synced-changes.ts'

/**
 * A read of a synced stream, made by `synced.read()`. It is cold: each iteration is a read of its own.
 * Leaving the loop and the signal end it.
 */
export class SyncedRead<Item> implements AsyncIterable<Item> {
  readonly #iterate: () => AsyncGenerator<Item, void, undefined>

  /** @internal */
  constructor(iterate: () => AsyncGenerator<Item, void, undefined>) {
    this.#iterate = iterate
  }

  /** Iterates over the records. */
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    return this.#iterate()
  }

  /** Resolves to all records, which are held in memory. */
  async toArray(): Promise<Item[]> {
    const items: Item[] = []
    for await (const item of this) items.push(item)
    return items
  }
}

/** A synced stream in one form: text, bytes or JSON. */
export abstract class SyncedReader<Content extends object>
  implements ChangeSource<SyncedRecord<Content>, SyncedRecord<Content>>
{
  /** The mirror: the copy of the server's stream, its state, and restarts. */
  readonly mirror: Mirror
  /** The outbox: the records that wait for the server, the parked ones, and `flush`. */
  readonly outbox: Outbox
  readonly #codec: ContentCodec<Content>

  /** @internal */
  constructor(parts: { readonly mirror: Mirror; readonly outbox: Outbox }, codec: ContentCodec<Content>) {
    this.mirror = parts.mirror
    this.outbox = parts.outbox
    this.#codec = codec
  }

  /** The state of the connection: that of the mirror. */
  get state(): MirrorState {
    return this.mirror.state
  }

  /** Emits the current state of the connection, then each change. */
  get state$(): Observable<MirrorState> {
    return this.mirror.state$
  }

  /** @internal The copy on this device, beside which folds store their snapshots. */
  get stored(): Stream {
    return this.mirror.local
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
    return this.view()
  }

  /**
   * Emits what `view$` emits, from the start that the query gives: by default the first record. Without a
   * bound in the query, it waits for a start that the copy does not have yet, and does not complete at the
   * end of a closed stream: records may still be pending. Completes when the synced stream is closed.
   */
  view(query: ReadQuery = {}): Observable<RecordView<SyncedRecord<Content>>> {
    return new Observable((subscriber) => {
      const subscription = new AbortController()
      const changes = this.changes(historyQuery(query), subscription)
      eachView(changes, (view) => subscriber.next(view)).then(
        () => subscriber.complete(),
        (error: unknown) => {
          // What has a `next` alone must not fail when the app closes everything.
          if (codeOf(error) === 'closed') subscriber.complete()
          else subscriber.error(error)
        },
      )
      return () => subscription.abort()
    })
  }

  /**
   * Reads what is stored on this device: the confirmed records in the order of the server, then the pending
   * ones, marked as pending, and then ends. Iterate over it, or call its `toArray()`. Begins with the first
   * record unless the query says where. The bounds of the query apply to the confirmed records. Rejects with
   * `closed` if the synced stream was closed before it knew its pending records, with `stream_deleted` if the
   * copy is replaced during the read, and with the failure of the local storage if it cannot read them.
   *
   * ```ts
   * for await (const { body, isPending } of chat.read({ tailOffset: 100 })) console.log(body, isPending)
   * ```
   */
  read(query: ReadQuery = {}, options?: CallOptions): SyncedRead<SyncedRecord<Content>> {
    const signal = signalOf(options)
    return new SyncedRead(() => this.#read(query, signal))
  }

  async *#read(
    query: ReadQuery,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<SyncedRecord<Content>, void, undefined> {
    // A consumer may be slower than the records that follow.
    const end = await this.mirror.local.checkTail({ signal }).then(
      ({ seqNum }) => seqNum,
      () => Number.POSITIVE_INFINITY,
    )
    let hasRecords = false
    for await (const change of this.#changes(historyQuery(query), signal)) {
      const { isReset, confirmed, pending, position, isCaughtUp } = change
      if (isReset && hasRecords) throw new HeadwaterError('stream_deleted', 'the copy was deleted')
      hasRecords ||= confirmed.length > 0
      yield* confirmed
      if (!isCaughtUp && position < end) continue
      yield* pending.map(({ item }) => item)
      break
    }
    signal?.throwIfAborted()
  }

  /**
   * Iterates over changes, as {@link ChangeSource} describes, from a sequence number or another start on.
   * Ends when the synced stream is closed; throws `closed` if everything on this device was not passed on by
   * then.
   */
  async *changes(
    from: number | ReadQuery,
    options: CallOptions,
  ): AsyncGenerator<SyncedChange<Content>, void, undefined> {
    const query = typeof from === 'number' ? { seqNum: from } : from
    const { closing } = this.outbox
    const ending = new AbortController()
    const ignore = onAnyAbort([options.signal, closing], (reason) => ending.abort(reason))
    let isCaughtUp = false
    try {
      for await (const change of this.#changes(query, ending.signal)) {
        ;({ isCaughtUp } = change)
        yield change
      }
    } catch (error) {
      // With the engine, the copy is closed too.
      if (!closing.aborted) throw error
    } finally {
      ignore()
    }
    if (closing.aborted && options.signal?.aborted !== true && !isCaughtUp) throw closing.reason
  }

  #changes(query: ReadQuery, signal: AbortSignal | undefined): SyncedChanges<Content> {
    return new SyncedChanges(this, this.#codec, query, signal)
  }
}

/** Calls back with the views that changes lead to. Resolves at the end of the changes. */
async function eachView<Content>(
  changes: AsyncIterable<SyncedChange<Content>>,
  onView: (view: RecordView<SyncedRecord<Content>>) => void,
): Promise<void> {
  let view = RecordView.empty<SyncedRecord<Content>>()
  for await (const { isReset, confirmed, pending, trimmedTo, isCaughtUp } of changes) {
    if (isReset) {
      view = RecordView.empty(view)
      onView(view)
    }
    const items = pending.map(({ item }) => item)
    view = view.next(confirmed, items, isCaughtUp)
    onView(view)
    const trimmed = countBelow(view, trimmedTo ?? 0)
    if (trimmed === 0) continue
    view = view.withoutFirst(trimmed)
    onView(view)
  }
}

/** Returns how many of the confirmed records of a view lie below a sequence number. */
function countBelow<Content>(view: RecordView<SyncedRecord<Content>>, seqNum: number): number {
  let count = 0
  while ((view.at(count)?.seqNum ?? seqNum) < seqNum) count++
  return count
}
