import type { JsonCodec } from '../../src/api/json-codec.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { isCommandShaped, type SequencedRecord, textRecord } from '../../src/model/record.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import type { StreamChange } from '../../src/sync/changes.ts'
import { originOf, originValue, withoutOrigin } from '../../src/sync/origin.ts'
import type { PendingEntry } from '../../src/sync/pending.ts'
import { RecordView } from '../../src/sync/record-view.ts'
import type { BytesContent, JsonContent, SyncedRecord, TextContent } from '../../src/sync/synced-record.ts'
import type { RecordChange } from './change-reader.ts'

/** A change of a synced stream. */
export interface SyncedChange<Content> extends StreamChange<SyncedRecord<Content>, SyncedRecord<Content>> {
  /** Records below this sequence number were trimmed; undefined if the change trims nothing. */
  readonly trimmedTo: number | undefined
}

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

/** Converts the changes of a synced stream from bytes to one form: text, bytes or JSON. */
export class ChangeConverter<Content extends object> {
  readonly #codec: ContentCodec<Content>
  /**
   * The records of pending entries, each of which is converted once: views tell by them which are the same.
   */
  readonly #pending = new WeakMap<PendingEntry, SyncedRecord<Content> | 'left out'>()

  constructor(codec: ContentCodec<Content>) {
    this.#codec = codec
  }

  async convert(change: RecordChange, device: string): Promise<SyncedChange<Content>> {
    const unknown = change.pending.filter(({ item }) => !this.#pending.has(item))
    if (unknown.length > 0) await this.#convertPending(unknown, device)
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

  async #convertPending(items: RecordChange['pending'], device: string): Promise<void> {
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

/** Calls back with the views that changes lead to. Resolves at the end of the changes. */
export async function eachView<Content>(
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

/** Yields the confirmed records that a copy has now, then the pending ones. */
export async function* storedRecords<Content>(
  local: Stream,
  changes: AsyncIterable<SyncedChange<Content>>,
  signal: AbortSignal | undefined,
): AsyncGenerator<SyncedRecord<Content>, void, undefined> {
  // A consumer may be slower than the records that follow.
  const end = await local.checkTail({ signal }).then(
    ({ seqNum }) => seqNum,
    () => Number.POSITIVE_INFINITY,
  )
  let hasRecords = false
  for await (const { isReset, confirmed, pending, position, isCaughtUp } of changes) {
    if (isReset && hasRecords) throw new HeadwaterError('stream_deleted', 'the copy was deleted')
    hasRecords ||= confirmed.length > 0
    yield* confirmed
    if (!isCaughtUp && position < end) continue
    yield* pending.map(({ item }) => item)
    return
  }
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
  let count = 0
  while ((view.at(count)?.seqNum ?? seqNum) < seqNum) count++
  return count
}
