import type { JsonCodec } from '../../src/api/json-codec.ts'
import type { ReadEvent, RecordCursor } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { isCommandShaped, type SequencedRecord, textRecord } from '../../src/model/record.ts'
import { onAbort, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { Condition } from '../../src/runtime/condition.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { type PendingEntry, pendingAt, type StreamChange } from '../../src/sync/changes.ts'
import { codeOf } from '../../src/sync/failures.ts'
import { ownNonces } from '../../src/sync/outbox.ts'
import {
  type BytesContent,
  type JsonContent,
  originOf,
  originValue,
  type SyncedRecord,
  type TextContent,
  withoutOrigin,
} from '../../src/sync/synced-record.ts'
import type { Mirror } from './mirror.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxLog } from './outbox-log.ts'

/** Returns the contents of records, in order; undefined for a record that is left out. */
export type ContentCodec<Content> = (
  records: readonly SequencedRecord[],
) => MaybePromise<readonly (Content | undefined)[]>

/** Text: UTF-8, with U+FFFD for each ill-formed part. */
export const textContent: ContentCodec<TextContent> = (records) =>
  records.map((record) => {
    const { headers, body } = textRecord(record)
    return { headers, body }
  })

/** Bytes, shared with other readers. */
export const bytesContent: ContentCodec<BytesContent> = (records) =>
  records.map(({ headers, body }) => ({ headers, body }))

/** JSON values by a codec. A record that is not one is left out if `onUndecodable` is given. */
export function jsonContent<Value>(
  codec: JsonCodec<Value>,
  onUndecodable: ((error: HeadwaterError) => void) | undefined,
): ContentCodec<JsonContent<Value>> {
  const decode = async (records: readonly SequencedRecord[]): Promise<(JsonContent<Value> | undefined)[]> => {
    try {
      return (await codec.decode(records)).map(({ headers, value }) => ({ headers, value }))
    } catch (error) {
      const isSkipped = HeadwaterError.is(error) && error.code === 'undecodable_record' && onUndecodable
      if (!isSkipped) throw error
      if (records.length > 1) {
        const contents = await Promise.all(records.map(async (record) => decode([record])))
        return contents.flat()
      }
      onUndecodable(error)
      return [undefined]
    }
  }
  return decode
}

/** A change of a synced stream. */
export interface SyncedChange<Content> extends StreamChange<SyncedRecord<Content>, SyncedRecord<Content>> {
  /** Records below this sequence number were trimmed; undefined if the change trims nothing. */
  readonly trimmedTo: number | undefined
}

/** A change in bytes. */
type RecordChange = StreamChange<SequencedRecord, PendingEntry>

/**
 * @internal Reads the local copy of a stream and its outbox as one series of changes, in text, bytes or JSON.
 * Waits while there is no local copy, or nothing can follow its records, and begins again if it is replaced.
 */
export class SyncedChanges<Content extends object> implements AsyncIterable<SyncedChange<Content>> {
  readonly #local: Stream
  readonly #log: OutboxLog
  readonly #codec: ContentCodec<Content>
  readonly #query: ReadQuery
  readonly #signal: AbortSignal | undefined
  readonly #cancels: (() => void)[]
  #cursor: RecordCursor | undefined
  #isEnded = false
  /** How often the outbox or the mirror may have changed. */
  #version = 0
  /** The version when the pending records were looked at last. */
  #seen = 0
  readonly #changes = new Condition()
  /** The change before; undefined after the copy was replaced. */
  #last: RecordChange | undefined
  #isReset = false
  /**
   * The records of pending entries, each of which is converted once: views tell by them which are the same.
   */
  readonly #pending = new WeakMap<PendingEntry, SyncedRecord<Content> | 'left out'>()

  constructor(
    { mirror, outbox: { log } }: { readonly mirror: Mirror; readonly outbox: Outbox },
    codec: ContentCodec<Content>,
    query: ReadQuery,
    signal: AbortSignal | undefined,
  ) {
    this.#local = mirror.local
    this.#log = log
    this.#codec = codec
    this.#query = query
    this.#signal = signal
    const onChange = () => {
      this.#version++
      this.#changes.notify()
    }
    // A copy that is missing may exist after a change of the mirror.
    const states = mirror.state$.subscribe(onChange)
    // Without a copy, there is no cursor that ends with the engine.
    const ignoreClosing = onAbort(this.#local.context.closing, onChange)
    this.#cancels = [log.subscribe(onChange), ignoreClosing, () => states.unsubscribe()]
    this.#cancels.push(onAnyAbort([signal], () => this.#end()))
  }

  /** Iterates over the changes, once, up to a bound of the query or until the signal aborts. */
  async *[Symbol.asyncIterator](): AsyncGenerator<SyncedChange<Content>, void, undefined> {
    try {
      if (this.#log.device === undefined) await unlessAborted(this.#signal, this.#log.loaded())
      for await (const change of this.#readCopies()) yield await this.#converted(change)
    } catch (error) {
      if (!this.#isEnded) throw error
    } finally {
      this.#end()
    }
  }

  #end(): void {
    this.#isEnded = true
    for (const cancel of this.#cancels) cancel()
    this.#cursor?.close()
    this.#changes.notify()
  }

  /** Reads one copy after the other, and the outbox alone while there is nothing to read. */
  async *#readCopies(): AsyncGenerator<RecordChange, void, undefined> {
    for (let identity: string | undefined; !this.#isEnded; ) {
      const version = this.#version
      const before = identity
      // Looked up first: a copy that replaces this one must not be mistaken for it.
      identity = await this.#lookUp(before)
      if (before !== undefined && identity !== before) this.#reset()
      if (identity !== undefined && identity !== before) {
        try {
          yield* this.#readCopy()
          if (!isUnbounded(this.#query)) return
        } catch (error) {
          if (codeOf(error) !== 'stream_deleted' && !isStreamMissing(error)) throw error
          this.#reset()
          identity = undefined
        }
        continue
      }
      if (identity === undefined) await this.#log.catchUp(this.#signal)
      const change = this.#changedPending()
      if (change !== undefined) yield change
      await this.#changes.until(() => this.#version !== version || this.#isEnded)
    }
  }

  /** Resolves to the identity of the copy; to undefined if there is none. */
  async #lookUp(known: string | undefined): Promise<string | undefined> {
    try {
      return await this.#local.identity()
    } catch (error) {
      if (isStreamMissing(error)) return undefined
      if (known !== undefined && HeadwaterError.is(error) && error.retryable) return known
      throw error
    }
  }

  /** Reads the copy until it is closed, or a bound of the query is reached. */
  async *#readCopy(): AsyncGenerator<RecordChange, void, undefined> {
    // A copy may have its start later.
    const clamp = this.#query.clamp || isUnbounded(this.#query)
    const query = { ...this.#query, clamp, waitMs: Number.POSITIVE_INFINITY }
    // An idle view must not be woken by further heartbeats.
    const cursor = await this.#local.openCursor(query, { heartbeats: 'first', allowsEmpty: 'always' })
    this.#cursor = cursor
    try {
      let arrival: Promise<ReadEvent | undefined> | undefined
      let hasArrived = false
      const arrive = () => {
        hasArrived = true
        this.#changes.notify()
      }
      for (let isFirst = true; !this.#isEnded; ) {
        // Which records are pending is known only with the first records of the copy.
        const isStale = () => !isFirst && this.#version !== this.#seen
        let change = isStale() && !hasArrived ? this.#changedPending() : undefined
        if (change === undefined) {
          if (arrival === undefined) {
            arrival = Promise.resolve(cursor?.next())
            arrival.then(arrive, arrive)
          }
          await this.#changes.until(() => hasArrived || isStale() || this.#isEnded)
          if (!hasArrived) continue
          const event: ReadEvent | undefined = await arrival
          arrival = undefined
          hasArrived = false
          if (event === undefined) return
          // What a copy has received, and that it was replaced, is noted before it changes, in any tab.
          if (isFirst) await this.#log.catchUp(this.#signal)
          isFirst = false
          change = await this.#received(event)
        }
        if (change !== undefined) yield change
      }
    } finally {
      cursor?.close()
    }
  }

  #reset(): void {
    this.#isReset = true
    this.#last = undefined
  }

  async #received(event: ReadEvent): Promise<RecordChange | undefined> {
    const { records, tail, lastSeqNum } =
      event.kind === 'batch' ? event.batch : { ...event, records: [], lastSeqNum: event.tail.seqNum - 1 }
    const position = lastSeqNum + 1
    await this.#log.found(records, 0, this.#signal)
    const start = position > (this.#last?.position ?? 0) ? (records[0]?.seqNum ?? position) : undefined
    return this.#changed(records, position, tail?.seqNum === position, start)
  }

  #changedPending(): RecordChange | undefined {
    return this.#changed([], this.#last?.position ?? 0, this.#last?.isCaughtUp ?? true)
  }

  /** Returns the change since the last one, or undefined if there is none. */
  #changed(
    records: readonly SequencedRecord[],
    position: number,
    isCaughtUp: boolean,
    start?: number,
  ): RecordChange | undefined {
    this.#seen = this.#version
    const last = this.#last
    const { device, state } = this.#log
    const pending = pendingAt(state, position, last?.pending ?? [], ownNonces(records, device!))
    const isSame =
      last?.isCaughtUp === isCaughtUp &&
      last.pending.length === pending.length &&
      last.pending.every((item, index) => item === pending[index])
    if (isSame && start === undefined) return undefined
    const isReset = this.#isReset
    this.#isReset = false
    const confirmed = this.#fromStart(records)
    this.#last = { ...(isReset && { isReset }), start, confirmed, position, pending, isCaughtUp }
    return this.#last
  }

  /** Leaves out records before the start, of which a copy may have no others yet. */
  #fromStart(records: readonly SequencedRecord[]): readonly SequencedRecord[] {
    const { seqNum: from = 0, timestamp: since = 0, clamp } = this.#query
    if (clamp) return records
    return records.filter(({ seqNum, timestamp }) => seqNum >= from && timestamp >= Number(since))
  }

  async #converted(change: RecordChange): Promise<SyncedChange<Content>> {
    const unknown = change.pending.filter(({ item }) => !this.#pending.has(item))
    if (unknown.length > 0) await this.#convertPending(unknown)
    const pending = change.pending.flatMap(({ number, item }) => {
      const record = this.#pending.get(item)!
      return record === 'left out' ? [] : [{ number, item: record }]
    })
    const confirmed = await this.#confirmedRecords(change.confirmed)
    return { ...change, confirmed, pending, trimmedTo: trimOf(change.confirmed) }
  }

  /** Converts confirmed records. Commands are left out. */
  async #confirmedRecords(records: readonly SequencedRecord[]): Promise<SyncedRecord<Content>[]> {
    const shown = records.filter(({ headers }) => !isCommandShaped(headers))
    const contents = await this.#codec(
      shown.map((record) => ({ ...record, headers: withoutOrigin(record.headers) })),
    )
    return shown.flatMap(({ seqNum, timestamp, headers }, index) => {
      const content = contents[index]
      if (content === undefined) return []
      const known = originOf(headers)
      const key = known === undefined ? String(seqNum) : originValue(known)
      const origin = known && { device: known.device, number: known.number }
      return { ...content, isPending: false as const, key, seqNum, timestamp, origin }
    })
  }

  async #convertPending(items: RecordChange['pending']): Promise<void> {
    const device = this.#log.device!
    const contents = await this.#codec(items.map(({ item }) => item.record))
    items.forEach(({ number, item }, index) => {
      const content = contents[index]
      const { error, record } = item
      const origin = { device, number }
      const key = originValue({ ...origin, nonce: record.nonce })
      const details = { isPending: true as const, key, timestamp: record.timestamp, origin, error }
      this.#pending.set(item, content === undefined ? 'left out' : { ...content, ...details })
    })
  }
}

function isUnbounded({ count, bytes, until }: ReadQuery): boolean {
  return (count ?? bytes ?? until) === undefined
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
