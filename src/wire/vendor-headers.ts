import { HeadwaterError } from '../model/errors.ts'
import { VENDOR_HEADERS, type VendorHeader, vendorHeaderName } from './header-names.ts'
import { HEADER_PREFIXES, mediaTypeEssence, sessionContentType } from './media-type.ts'

/** The prefix of a response whose request used none. */
const DEFAULT_HEADER_PREFIX = 'svc'

/** The headers of a request. */
export interface RequestHeaders {
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined
  /** The names of all headers, in lower case. */
  headerNames?(): readonly string[]
}

/**
 * The value of a header under any of the accepted prefixes, or undefined if it is absent. Throws 400
 * `bad_header` if it is present under two prefixes with different values.
 */
export function vendorHeader(
  headers: RequestHeaders,
  header: VendorHeader,
  headerPrefixes: readonly string[] = HEADER_PREFIXES,
): string | undefined {
  let first: string | undefined
  let found: string | undefined
  for (const prefix of headerPrefixes) {
    const name = vendorHeaderName(prefix, header)
    const value = headers.header(name)
    if (value === undefined) continue
    if (found !== undefined && found !== value) {
      const message = `headers \`${first}\` and \`${name}\` have different values`
      throw new HeadwaterError('bad_header', message, { field: name })
    }
    first ??= name
    found = value
  }
  return found
}

/**
 * The prefix that the response to a request uses: the request's own, as {@link usedHeaderPrefix} finds it,
 * otherwise `svc`, or the first accepted prefix if `svc` is not among them.
 */
export function headerPrefixOf(
  headers: RequestHeaders,
  headerPrefixes: readonly string[] = HEADER_PREFIXES,
): string {
  const used = usedHeaderPrefix(headers, headerPrefixes)
  if (used !== undefined) return used
  const [first = DEFAULT_HEADER_PREFIX] = headerPrefixes
  return headerPrefixes.includes(DEFAULT_HEADER_PREFIX) ? DEFAULT_HEADER_PREFIX : first
}

/**
 * The prefix in a request's session content type, or else in its vendor headers, or else in headers that only
 * other versions of the protocol have; the first accepted one if it used several, undefined if it used none.
 */
export function usedHeaderPrefix(
  headers: RequestHeaders,
  headerPrefixes: readonly string[] = HEADER_PREFIXES,
): string | undefined {
  const contentType = mediaTypeEssence(headers.header('content-type'))
  return (
    headerPrefixes.find((prefix) => contentType === sessionContentType(prefix)) ??
    headerPrefixes.find((prefix) =>
      VENDOR_HEADERS.some((header) => headers.header(vendorHeaderName(prefix, header)) !== undefined),
    ) ??
    headerPrefixes.find((prefix) => headers.headerNames?.().some((name) => name.startsWith(`${prefix}-`)))
  )
}

/**
 * How JSON strings encode the bytes of header names, header values and bodies (docs/protocol.md
 * "Data format").
 */
export type DataFormat = 'raw' | 'base64'

/**
 * Parses the `svc-format` header; an absent one is `raw`. Throws 400 `bad_header`, naming the header as
 * `name`, for any other value.
 */
export function parseDataFormat(value: string | null | undefined, name = 'svc-format'): DataFormat {
  switch (value?.trim()) {
    case undefined:
    case 'raw':
    case 'json':
      return 'raw'
    case 'base64':
    case 'json-binsafe':
      return 'base64'
    default:
      throw new HeadwaterError('bad_header', `Invalid header \`${name}\`: must be \`raw\` or \`base64\``, {
        field: 'format',
      })
  }
}
