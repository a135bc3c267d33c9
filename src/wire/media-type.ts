import { HeadwaterError } from '../model/errors.ts'

/** The meaning of a media type to the protocol. */
export type MediaKind = 'json' | 'protobuf' | 'session' | 'event-stream' | 'other'

/** A header as `Headers.get` returns it. */
export type HeaderValue = string | null | undefined

const MEDIA_TYPE = /^[ \t]*([!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+)[ \t]*(?:[;,]|$)/

/**
 * The type and subtype, in lower case, of the first media type in a header; undefined if the header is absent
 * or does not begin with a media type. Parameters are ignored.
 */
export function mediaTypeEssence(header: HeaderValue): string | undefined {
  return MEDIA_TYPE.exec(header ?? '')?.[1]?.toLowerCase()
}

/**
 * Classifies the first media type of an `Accept` or `Content-Type` header (docs/protocol.md "Content types").
 * Ignores parameters and quality values. Returns undefined if the header is absent or does not begin with a
 * media type.
 */
export function mediaKind(header: HeaderValue): MediaKind | undefined {
  const essence = mediaTypeEssence(header)
  if (essence === undefined) return undefined
  if (essence === 'application/json' || /^application\/.+\+json$/.test(essence)) return 'json'
  if (essence === 'application/protobuf' || essence === 'application/x-protobuf') return 'protobuf'
  if (essence === 'text/event-stream') return 'event-stream'
  return /^(svc|s2)s\/proto$/.test(essence) ? 'session' : 'other'
}

/** The form of a read's response. The session content type precedes `Accept`; nothing is rejected. */
export function readForm(
  contentType: HeaderValue,
  accept: HeaderValue,
): 'session' | 'event-stream' | 'protobuf' | 'json' {
  if (mediaKind(contentType) === 'session') return 'session'
  const accepted = mediaKind(accept)
  return accepted === 'event-stream' || accepted === 'protobuf' ? accepted : 'json'
}

/** Throws 400 `bad_json` unless the content type of a mandatory body is JSON. */
export function requireJson(contentType: HeaderValue): void {
  if (mediaKind(contentType) === 'json') return
  throw new HeadwaterError('bad_json', 'Expected request with `Content-Type: application/json`', {
    field: 'content-type',
  })
}
