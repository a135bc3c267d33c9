import type { JsonCodec } from '../../src/api/json-codec.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { isCommandShaped, type SequencedRecord, textRecord } from '../../src/model/record.ts'
import { andThen, isPromise, type MaybePromise } from '../../src/runtime/maybe-promise.ts'
import type { ChangeOptions, NumberedItem } from '../../src/sync/changes.ts'
import { originOf, originValue, withoutOrigin } from '../../src/sync/origin.ts'
import { RecordView } from '../../src/sync/record-view.ts'
import type { BytesContent, JsonContent, SyncedRecord, TextContent } from '../../src/sync/synced-record.ts'
import { ChangeReader, type RecordChange } from './change-reader.ts'
import type { PendingEntry, PendingSource } from './pending-source.ts'
import type { SyncedChange } from './synced-read.ts'

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
  readonly #local: Stream
  readonly #source: PendingSource
  readonly #codec: ContentCodec<Content>
  readonly #pending: PendingRecords<Content>

  constructor(local: Stream, source: PendingSource, codec: ContentCodec<Content>) {
    this.#local = local
    this.#source = source
    this.#codec = codec
    this.#pending = new PendingRecords(codec)
  }

  /** Opens a reader of changes in bytes. */
  open(query: ReadQuery, { signal, leaving = [] }: ChangeOptions): ChangeReader {
    return new ChangeReader(this.#local, this.#source, query, signal, leaving)
  }

  /** Converts a change of the reader. */
  async convert(change: RecordChange): Promise<SyncedChange<Content>> {
    const pending = await this.#pending.convert(change.pending, this.#source.device!)
    const confirmed = await confirmedRecords(change.confirmed, this.#codec)
    return { ...change, confirmed, pending, trimmedTo: trimOf(change.confirmed) }
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

/** Converts confirmed records. Commands are left out. */
async function confirmedRecords<Content extends object>(
  records: readonly SequencedRecord[],
  codec: ContentCodec<Content>,
): Promise<SyncedRecord<Content>[]> {
  const shown = records.filter(({ headers }) => !isCommandShaped(headers))
  const contents = await codec(shown.map(withoutOriginHeader))
  return shown.flatMap(({ seqNum, timestamp, headers }, index) => {
    const content = contents[index]
    if (content === undefined) return []
    const origin = originOf(headers)
    if (origin === undefined) {
      return { ...content, isPending: false, key: String(seqNum), seqNum, timestamp, origin }
    }
    const { device, number } = origin
    const key = originValue(origin)
    return { ...content, isPending: false, key, seqNum, timestamp, origin: { device, number } }
  })
}

interface Converted<Content> {
  readonly entries: readonly NumberedItem<PendingEntry>[]
  readonly records: readonly NumberedItem<SyncedRecord<Content>>[]
}

/** Converts pending records, each once, so that views can tell which are the same. */
class PendingRecords<Content extends object> {
  readonly #codec: ContentCodec<Content>
  /** The entries that were converted last, and their records. */
  #last: Converted<Content> = { entries: [], records: [] }
  readonly #converted = new WeakMap<PendingEntry, MaybePromise<readonly SyncedRecord<Content>[]>>()

  constructor(codec: ContentCodec<Content>) {
    this.#codec = codec
  }

  /** Converts all pending entries. Most often, there is one more than last time, and thousands wait. */
  async convert(
    entries: readonly NumberedItem<PendingEntry>[],
    device: string,
  ): Promise<Converted<Content>['records']> {
    const last = this.#last
    const isContinued = last.entries.every((entry, index) => entry === entries[index])
    const records = isContinued ? last.records.slice() : []
    for (const { number, item } of isContinued ? entries.slice(last.entries.length) : entries) {
      const converted = this.#of(item, device, number)
      for (const record of isPromise(converted) ? await converted : converted)
        records.push({ number, item: record })
    }
    this.#last = { entries, records }
    return records
  }

  /** Returns the record of an entry, or an empty list if it is left out. */
  #of(entry: PendingEntry, device: string, number: number): MaybePromise<readonly SyncedRecord<Content>[]> {
    const known = this.#converted.get(entry)
    if (known !== undefined) return known
    const { record, error } = entry
    const { timestamp } = record
    const origin = { device, number }
    const key = originValue({ ...origin, nonce: record.nonce })
    const converted = andThen(this.#codec([record]), (contents) =>
      contents.flatMap((content) =>
        content === undefined
          ? []
          : [{ ...content, isPending: true as const, key, timestamp, origin, error }],
      ),
    )
    this.#converted.set(entry, converted)
    return converted
  }
}

function withoutOriginHeader(record: SequencedRecord): SequencedRecord {
  const headers = withoutOrigin(record.headers)
  return headers === record.headers ? record : { ...record, headers }
}
