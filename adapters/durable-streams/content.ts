import type { ReadBatch } from '../../src/index.ts'
import { concatBytes, lossyTextOf } from '../../src/model/bytes.ts'
import { encodeBase64 } from '../../src/wire/base64.ts'
import { mediaTypeEssence } from '../../src/wire/media-type.ts'
import { DurableStreamsError } from './durable-streams-error.ts'
import { jsonArray, jsonMessages } from './json-messages.ts'

/** The content type of streams without one, such as those created over the wire protocol. */
export const DEFAULT_CONTENT_TYPE = 'application/octet-stream'

/** The conversion between the records of a stream and bodies and events, for its content type. */
export interface Content {
  /** The records of a body. Throws 400 if it is malformed. */
  recordsOf(body: Uint8Array): readonly (Uint8Array | string)[]
  /** The body of a response with the records of a batch that has no commands. */
  bodyOf(batch: ReadBatch): string | Uint8Array
  /** The data of the event with the records of a batch that has no commands. */
  eventDataOf(batch: ReadBatch): string
  /** Whether events contain base64. */
  readonly isBase64: boolean
  /** The body of a response without records. */
  readonly empty: string
}

const bodiesOf = (batch: ReadBatch): readonly Uint8Array[] => batch.records.map(({ body }) => body)

const JSON_CONTENT: Content = {
  recordsOf: jsonMessages,
  bodyOf: (batch) => jsonArray(bodiesOf(batch)),
  eventDataOf: (batch) => jsonArray(bodiesOf(batch)),
  isBase64: false,
  empty: '[]',
}

const TEXT_CONTENT: Content = {
  recordsOf: (body) => [body],
  bodyOf: (batch) => concatBytes(bodiesOf(batch)),
  eventDataOf: (batch) => lossyTextOf(concatBytes(bodiesOf(batch))),
  isBase64: false,
  empty: '',
}

const BINARY_CONTENT: Content = {
  ...TEXT_CONTENT,
  eventDataOf: (batch) => encodeBase64(concatBytes(bodiesOf(batch))),
  isBase64: true,
}

/** The content of streams with this content type. */
export function contentOf(contentType: string): Content {
  // The common case needs no parsing.
  if (contentType === 'application/json') return JSON_CONTENT
  const essence = mediaTypeEssence(contentType)
  if (essence === 'application/json') return JSON_CONTENT
  return essence?.startsWith('text/') ? TEXT_CONTENT : BINARY_CONTENT
}

/** Whether two content types are equal apart from their parameters. */
export function isSameType(one: string, other: string): boolean {
  return one === other || mediaTypeEssence(one) === mediaTypeEssence(other)
}

/** Throws 400 for a header that is not a media type. */
export function assertContentType(value: string): void {
  if (mediaTypeEssence(value) === undefined) {
    throw new DurableStreamsError(400, '`content-type` must be a media type')
  }
}
