import type { SequencedRecord } from '../../src/index.ts'
import { concatBytes, encodeBase64, lossyTextOf, textOf } from '../../src/model/bytes.ts'
import { LARGE_APPEND_RECORDS_MAX } from '../../src/model/limits.ts'
import { mediaTypeEssence } from '../../src/wire/media-type.ts'
import { DurableStreamsError } from './headers.ts'
import { messagesOf } from './messages.ts'

/** The content type of streams without one, such as those created over the wire protocol. */
export const DEFAULT_CONTENT_TYPE = 'application/octet-stream'

/** The conversion between the records of a stream and bodies and events, for its content type. */
export interface Content {
  /** The messages of a body. Throws 400 if it is malformed. */
  messagesOf(body: Uint8Array): readonly (Uint8Array | string)[]
  /** The body of a response with records that are no commands. */
  bodyOf(records: readonly SequencedRecord[]): string | Uint8Array
  /** The data of the event with records that are no commands. */
  eventDataOf(records: readonly SequencedRecord[]): string
  /** Whether events contain base64. */
  readonly isBase64: boolean
  /** The body of a response without records. */
  readonly empty: string
}

const bytesOf = (records: readonly SequencedRecord[]) => concatBytes(records.map(({ body }) => body))

const JSON_CONTENT: Content = {
  messagesOf: jsonMessages,
  bodyOf: (records) => jsonArray(messagesOf(records)),
  eventDataOf: (records) => jsonArray(messagesOf(records)),
  isBase64: false,
  empty: '[]',
}

const TEXT_CONTENT: Content = {
  messagesOf: (body) => [body],
  bodyOf: bytesOf,
  eventDataOf: (records) => lossyTextOf(bytesOf(records)),
  isBase64: false,
  empty: '',
}

const BINARY_CONTENT: Content = {
  ...TEXT_CONTENT,
  eventDataOf: (records) => encodeBase64(bytesOf(records)),
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

/** The types that a browser shows without running or loading anything that they contain. */
const PASSIVE =
  /^(text\/plain|application\/(json|octet-stream)|(image\/(png|jpeg|gif|webp|avif)|(audio|video)\/.*))$/

/** The headers of a body: a browser that opens its URL saves it, unless its type is known to be passive. */
export function contentHeaders(contentType: string): Record<string, string> {
  const isPassive = PASSIVE.test(mediaTypeEssence(contentType) ?? '')
  return { 'content-type': contentType, ...(!isPassive && { 'content-disposition': 'attachment' }) }
}

/**
 * The messages of a JSON body: the elements of an array, or else one value. They are pieces of the text, so
 * that numbers and the order of members stay as they are. Stops after one more than an append may have.
 * Throws 400 if the body is not JSON.
 */
export function jsonMessages(body: Uint8Array): readonly string[] {
  const text = textOf(body)
  const value = text === undefined ? INVALID : parsed(text)
  if (value === INVALID) throw new DurableStreamsError(400, 'the body is not valid JSON')
  const trimmed = text!.trim()
  if (!Array.isArray(value)) return [trimmed]
  // One element, as most clients send it, has no comma to look for.
  return value.length === 1 ? [trimmed.slice(1, -1).trim()] : elementsOf(trimmed)
}

/**
 * Returns bodies as a JSON array. One that is not JSON, which another protocol has written, becomes a string.
 */
export function jsonArray(bodies: readonly Uint8Array[]): string {
  // Each by itself: two bodies that are not JSON, such as `[0` and `1]`, can be JSON together.
  const messages = bodies.map(lossyTextOf).map((text) => (isJson(text) ? text : JSON.stringify(text)))
  return `[${messages.join(',')}]`
}

const INVALID = Symbol('invalid')

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return INVALID
  }
}

function isJson(text: string): boolean {
  return parsed(text) !== INVALID
}

const STRUCTURE = /["[\]{},]/g

/** The elements of an array in valid JSON. */
function elementsOf(array: string): readonly string[] {
  const elements: string[] = []
  let depth = 0
  let start = 1
  STRUCTURE.lastIndex = 0
  for (let match = STRUCTURE.exec(array); match !== null; match = STRUCTURE.exec(array)) {
    const [character] = match
    if (character === '"') STRUCTURE.lastIndex = endOfString(array, match.index)
    else if (character === '[' || character === '{') depth++
    else if (character !== ',') depth--
    const isEnd = depth === 0
    if (!isEnd && (character !== ',' || depth > 1)) continue
    const element = array.slice(start, match.index).trim()
    if (element !== '') elements.push(element)
    if (isEnd || elements.length > LARGE_APPEND_RECORDS_MAX) break
    start = match.index + 1
  }
  return elements
}

/** The index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end + 1
  }
}
