import type { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { Stream } from '../../src/api/stream.ts'
import { historyQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { LazyModule } from '../../src/runtime/lazy-module.ts'
import { Observable as ObservableClass } from '../../src/runtime/observable.ts'
import type { ChangeOptions, ChangeSource } from '../../src/sync/changes.ts'
import type { RecordView } from '../../src/sync/record-view.ts'
import type { SyncedRecord } from '../../src/sync/synced-record.ts'
import { browserWakeUps } from './page-events.ts'
import { withRetries } from './pause.ts'
import type { PendingSource } from './pending-source.ts'
import type { ChangeConverter, ContentCodec } from './synced-changes.ts'
import { type SyncedChange, SyncedRead } from './synced-read.ts'

/** The code that only reads need, because an app may use a mirror or an outbox alone. */
const CHANGES = new LazyModule('the code of reads', () => import('./synced-changes.ts'))

/** Picks the codec of a form from the code of reads. */
export type CodecOf<Content> = (code: typeof import('./synced-changes.ts')) => ContentCodec<Content>

/** Reads a synced stream in one form: text, bytes or JSON. */
export abstract class SyncedReader<Content extends object>
  implements ChangeSource<SyncedRecord<Content>, SyncedRecord<Content>>
{
  readonly #local: Stream
  readonly #source: PendingSource
  readonly #codecOf: CodecOf<Content>
  #converter: ChangeConverter<Content> | undefined

  /** @internal */
  constructor(local: Stream, source: PendingSource, codecOf: CodecOf<Content>) {
    this.#local = local
    this.#source = source
    this.#codecOf = codecOf
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
    return this.view()
  }

  /**
   * Emits what `view$` emits, from the start that the query gives: by default the first record. Without a
   * bound in the query, it waits for a start that the copy does not have yet, and does not complete at the
   * end of a closed stream: records may still be pending.
   */
  view(query: ReadQuery = {}): Observable<RecordView<SyncedRecord<Content>>> {
    return new ObservableClass((subscriber) => {
      const subscription = new AbortController()
      const emit = async () => {
        const { eachView } = await this.#loaded(subscription.signal)
        await eachView(this.changes(historyQuery(query), subscription), (view) => subscriber.next(view))
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
    const { storedRecords } = await this.#loaded(signal)
    const changes = this.changes(historyQuery(query), { signal })
    yield* storedRecords(this.#local, changes, signal)
    signal?.throwIfAborted()
  }

  /** Iterates over changes, as {@link ChangeSource} describes, from a sequence number or another start on. */
  async *changes(
    from: number | ReadQuery,
    options: ChangeOptions,
  ): AsyncGenerator<SyncedChange<Content>, void, undefined> {
    const query = typeof from === 'number' ? { seqNum: from } : from
    const code = await this.#loaded(options.signal)
    this.#converter ??= new code.ChangeConverter(this.#local, this.#source, this.#codecOf(code))
    const reader = this.#converter.open(query, options)
    try {
      for (let change = await reader.next(); change !== undefined; change = await reader.next()) {
        yield await this.#converter.convert(change)
      }
    } finally {
      reader.close()
    }
  }

  /** Resolves to the code of reads. */
  #loaded(signal: AbortSignal | undefined): Promise<typeof import('./synced-changes.ts')> {
    const { clock } = this.#local.context
    const context = { clock, random: Math.random, wakeUps: browserWakeUps, onState: () => {} }
    return withRetries(() => CHANGES.load(), context, signal ?? new AbortController().signal)
  }
}
