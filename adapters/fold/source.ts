import type { JsonStream } from '../../src/api/json-stream.ts'
import { ReadSession, type ReadSessionEvent } from '../../src/api/read-session.ts'
import { ClosableIterator } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { TextRecord } from '../../src/model/record.ts'
import { andThen, type MaybePromise } from '../../src/runtime/maybe-promise.ts'
import type { ReadBatch } from '../../src/storage/record-batch.ts'
import type { ChangeSource, StreamChange } from '../../src/sync/changes.ts'

/**
 * A source of changes that a fold can store snapshots beside.
 *
 * ```ts
 * // The records of two streams, one after the other.
 * const both: FoldSource<TextRecord, never> = {
 *   async *changes(from, { signal }) {
 *     const other = basin.stream('archive')
 *     const records = [...(await other.read({}, { signal }).toArray()), ...(await stream.read().toArray())]
 *     yield { confirmed: records.slice(from), position: records.length, pending: [], isCaughtUp: true }
 *   },
 * }
 * const count = fold(both, { version: 1, initial: 0, reduce: (sum) => sum + 1 })
 * ```
 */
export interface FoldSource<Confirmed, Pending = Confirmed> extends ChangeSource<Confirmed, Pending> {
  /** @internal The stream whose records are the confirmed ones. Snapshots are stored beside it. */
  readonly stored?: Stream | undefined
}

/** The items of a batch. */
type ItemsOf<Item> = (batch: ReadBatch) => MaybePromise<readonly Item[]>

/** A stream as a source of changes. Nothing is pending in it, and command records are left out. */
class StreamSource<Item> implements FoldSource<Item> {
  readonly stored: Stream
  readonly #itemsOf: ItemsOf<Item>
  readonly #create: boolean

  private constructor(stream: Stream, itemsOf: ItemsOf<Item>, create: boolean) {
    this.stored = stream
    this.#itemsOf = itemsOf
    this.#create = create
  }

  /** Returns the source of the text records of a stream. */
  static ofText(stream: Stream, create: boolean): StreamSource<TextRecord> {
    return new StreamSource(stream, (batch) => batch.withoutCommands().as('string').records, create)
  }

  /** Returns the source of the values of a stream. */
  static ofJson<Value, Input>(stream: JsonStream<Value, Input>, create: boolean) {
    return new StreamSource(stream.stream as Stream, (batch) => stream.decodeBatch(batch), create)
  }

  changes(
    from: number,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncIterableIterator<StreamChange<Item, Item>> {
    const query = { seqNum: from, waitMs: Number.POSITIVE_INFINITY }
    const open = (heartbeats: boolean) =>
      this.stored.openCursor(query, {
        heartbeats: heartbeats && 'first',
        create: this.#create,
        allowsEmpty: 'always',
      })
    const read = new ReadSession<Item, ItemBatch<Item>>(open, (batch) => this.#convert(batch), signal)
    return new ReadChanges(read.events(), from, signal)
  }

  #convert(batch: ReadBatch): MaybePromise<ItemBatch<Item>> {
    const { lastSeqNum, tail } = batch
    const position = lastSeqNum + 1
    const start = batch.records[0]?.seqNum
    const isCaughtUp = tail?.seqNum === position
    return andThen(this.#itemsOf(batch), (records) => ({ start, records, position, isCaughtUp }))
  }
}

interface ItemBatch<Item> {
  readonly start: number | undefined
  readonly records: readonly Item[]
  readonly position: number
  readonly isCaughtUp: boolean
}

/** Converts the events of a read to changes. Unlike a generator, it refers to none while it waits. */
class ReadChanges<Item> extends ClosableIterator<StreamChange<Item, Item>> {
  readonly #events: AsyncGenerator<ReadSessionEvent<ItemBatch<Item>>, void, undefined>
  readonly #signal: AbortSignal
  #position: number
  #isCaughtUp = false

  constructor(
    events: AsyncGenerator<ReadSessionEvent<ItemBatch<Item>>, void, undefined>,
    from: number,
    signal: AbortSignal,
  ) {
    super()
    this.#events = events
    this.#position = from
    this.#signal = signal
  }

  async next(): Promise<IteratorResult<StreamChange<Item, Item>, void>> {
    try {
      for (;;) {
        const { done, value: event } = await this.#events.next()
        if (done) break
        const change = this.#changeOf(event)
        // A heartbeat while nothing happens.
        if (this.#isCaughtUp && change.start === undefined) continue
        this.#position = change.position
        this.#isCaughtUp = change.isCaughtUp
        return { done: false, value: change }
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error
    }
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<StreamChange<Item, Item>, void>> {
    await this.#events.return()
    return { done: true, value: undefined }
  }

  #changeOf(event: ReadSessionEvent<ItemBatch<Item>>): StreamChange<Item, Item> {
    if (event.kind === 'batch') {
      const { start, records: confirmed, position, isCaughtUp } = event.batch
      return { start, confirmed, position, pending: [], isCaughtUp }
    }
    const tail = event.tail.seqNum
    // All records up to the tail were trimmed.
    const start = tail > this.#position ? tail : undefined
    return { start, confirmed: [], position: tail, pending: [], isCaughtUp: true }
  }
}

/** Returns the source of changes that a fold follows. Throws `invalid` for anything else. */
export function foldSourceOf(
  source: Stream | JsonStream<unknown, never> | FoldSource<unknown, unknown>,
  create: boolean,
): FoldSource<unknown, unknown> {
  const given = Object(source)
  if (typeof given.changes === 'function') return given
  if (typeof given.decodeBatch === 'function') return StreamSource.ofJson(given, create)
  if (typeof given.openCursor === 'function') return StreamSource.ofText(given, create)
  throw new HeadwaterError('invalid', '`source` must be a stream', { field: 'source' })
}
