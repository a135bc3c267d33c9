import { HeadwaterError } from '../model/errors.ts'
import { mediaTypeEssence } from './media-type.ts'
import {
  DEFAULT_VENDOR_WORD,
  sessionContentType,
  VENDOR_HEADERS,
  VENDOR_WORDS,
  type VendorHeader,
  vendorHeaderName,
} from './words.ts'

/** What is read of a request's headers; the platform's `Headers` is one. */
export interface RequestHeaders {
  get(name: string): string | null
}

/**
 * The value of a header under any of the accepted words, or undefined when there is none. Throws 400 `bad_header` when two words
 * give it different values: which one was meant cannot be told.
 */
export function vendorHeader(
  headers: RequestHeaders,
  header: VendorHeader,
  words: readonly string[] = VENDOR_WORDS,
): string | undefined {
  let found: { readonly name: string; readonly value: string } | undefined
  for (const word of words) {
    const name = vendorHeaderName(word, header)
    const value = headers.get(name)
    if (value === null) continue
    if (found !== undefined && found.value !== value) {
      throw new HeadwaterError('bad_header', `Headers \`${found.name}\` and \`${name}\` differ`, {
        field: name,
      })
    }
    found ??= { name, value }
  }
  return found?.value
}

/**
 * The word that a request used, as its session content type or else in a header of the protocol, so that the response uses the
 * same. The first of `words` when it used several; when it used none, `svc`, or the first of `words` where `svc` is not accepted.
 */
export function wordOfRequest(headers: RequestHeaders, words: readonly string[] = VENDOR_WORDS): string {
  return (
    usedWord(headers, words) ??
    (words.includes(DEFAULT_VENDOR_WORD) ? DEFAULT_VENDOR_WORD : (words[0] ?? DEFAULT_VENDOR_WORD))
  )
}

/** The same, but undefined when the request used none: then it can't be told which of them its client reads. */
export function usedWord(
  headers: RequestHeaders,
  words: readonly string[] = VENDOR_WORDS,
): string | undefined {
  const contentType = mediaTypeEssence(headers.get('content-type'))
  return (
    words.find((word) => contentType === sessionContentType(word)) ??
    words.find((word) =>
      VENDOR_HEADERS.some((header) => headers.get(vendorHeaderName(word, header)) !== null),
    )
  )
}
