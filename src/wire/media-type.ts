import { HeadwaterError } from '../model/errors.ts'
import { sessionContentType, VENDOR_WORDS } from './words.ts'

/** What a media type means to the protocol. */
export type MediaKind = 'json' | 'protobuf' | 'session' | 'event-stream' | 'other'

/** A header as `Headers.get` gives it. */
export type HeaderValue = string | null | undefined

const MEDIA_TYPE = /^[ \t]*([!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+)[ \t]*(?:[;,]|$)/

/**
 * Type and subtype, in lower case, of the first media type in a header; undefined when the header is absent or begins otherwise.
 * Parameters are not looked at.
 */
export function mediaTypeEssence(header: HeaderValue): string | undefined {
  return MEDIA_TYPE.exec(header ?? '')?.[1]?.toLowerCase()
}

/**
 * Classifies the first media type of an `Accept` or `Content-Type` header (wire-behaviour.md 1.5). Parameters and quality values do
 * not count. Undefined when the header is absent or does not begin with a media type.
 */
export function mediaKind(
  header: HeaderValue,
  words: readonly string[] = VENDOR_WORDS,
): MediaKind | undefined {
  const essence = mediaTypeEssence(header)
  if (essence === undefined) return undefined
  if (essence === 'application/json' || /^application\/.+\+json$/.test(essence)) return 'json'
  if (essence === 'application/protobuf' || essence === 'application/x-protobuf') return 'protobuf'
  if (essence === 'text/event-stream') return 'event-stream'
  return words.some((word) => essence === sessionContentType(word)) ? 'session' : 'other'
}

/** What a read answers with: a session by `Content-Type` wins over `Accept`; nothing is ever refused. */
export function readForm(
  contentType: HeaderValue,
  accept: HeaderValue,
  words: readonly string[] = VENDOR_WORDS,
): 'session' | 'event-stream' | 'protobuf' | 'json' {
  if (mediaKind(contentType, words) === 'session') return 'session'
  const accepted = mediaKind(accept, words)
  return accepted === 'event-stream' || accepted === 'protobuf' ? accepted : 'json'
}

/** How the body of an append is read. Whatever is neither session nor protobuf goes the way of JSON: {@link requireJson}. */
export function appendForm(
  contentType: HeaderValue,
  words: readonly string[] = VENDOR_WORDS,
): 'session' | 'protobuf' | 'json' {
  const kind = mediaKind(contentType, words)
  return kind === 'session' || kind === 'protobuf' ? kind : 'json'
}

/** What a unary append answers with; errors are JSON in any case. */
export function ackForm(accept: HeaderValue): 'protobuf' | 'json' {
  return mediaKind(accept) === 'protobuf' ? 'protobuf' : 'json'
}

/** For endpoints whose JSON body is mandatory. Throws 400 `bad_json` unless the content type is JSON. */
export function requireJson(contentType: HeaderValue): void {
  if (mediaKind(contentType) === 'json') return
  throw new HeadwaterError('bad_json', 'Expected request with `Content-Type: application/json`', {
    field: 'content-type',
  })
}

/**
 * For endpoints whose JSON body is optional (PUT): undefined when the body counts as absent, because there is no content type or no
 * byte. Throws 400 `bad_json` for any content type but JSON.
 */
export function optionalJsonBody(contentType: HeaderValue, body: Uint8Array): Uint8Array | undefined {
  if (mediaKind(contentType) === undefined) return undefined
  requireJson(contentType)
  return body.length === 0 ? undefined : body
}
