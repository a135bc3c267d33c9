import type { JsonCodec } from '../../src/api/json-codec.ts'
import { isCommandShaped } from '../../src/model/command.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type SequencedRecord, textRecord } from '../../src/model/record.ts'
import { andThen, type MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { originOf, originValue, withoutOrigin } from '../../src/sync/origin.ts'
import type { BytesContent, JsonContent, SyncedRecord, TextContent } from '../../src/sync/synced-record.ts'
import type { PendingEntry } from './pending-source.ts'

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

/** Converts confirmed records. Commands are left out. */
export async function confirmedRecords<Content extends object>(
  records: readonly SequencedRecord[],
  codec: ContentCodec<Content>,
): Promise<SyncedRecord<Content>[]> {
  const shown = records.filter(({ headers }) => !isCommandShaped(headers))
  const contents = await codec(shown.map(withoutOriginHeader))
  return shown.flatMap(({ seqNum, timestamp, headers }, index) => {
    const content = contents[index]
    if (content === undefined) return []
    const origin = originOf(headers)
    const key = origin === undefined ? String(seqNum) : originValue(origin)
    return { ...content, isPending: false, key, seqNum, timestamp, origin }
  })
}

/** Converts pending records, each once, so that views can tell which are the same. */
export class PendingRecords<Content extends object> {
  readonly #codec: ContentCodec<Content>
  readonly #converted = new WeakMap<PendingEntry, MaybePromise<readonly SyncedRecord<Content>[]>>()

  constructor(codec: ContentCodec<Content>) {
    this.#codec = codec
  }

  /** Returns the record of an entry, or an empty list if it is left out. */
  of(entry: PendingEntry, device: string, number: number): MaybePromise<readonly SyncedRecord<Content>[]> {
    const known = this.#converted.get(entry)
    if (known !== undefined) return known
    const { record, error } = entry
    const { timestamp } = record
    const origin = { device, number }
    const key = originValue(origin)
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
