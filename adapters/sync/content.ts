import type { JsonCodec } from '../../src/api/json-codec.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type SequencedRecord, textRecord } from '../../src/model/record.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import type { BytesContent, JsonContent, TextContent } from '../../src/sync/synced-record.ts'

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
