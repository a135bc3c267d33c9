import { INTEGER_MAX } from '../model/limits.ts'

/** The headers whose names begin with a header prefix (docs/protocol.md "Header prefixes"). */
export const VENDOR_HEADERS = [
  'basin',
  'encryption-key',
  'format',
  'provision-result',
  'request-token',
  'stream-config',
] as const

export type VendorHeader = (typeof VENDOR_HEADERS)[number]

type HeaderNames = Readonly<Record<VendorHeader, string>>

/** The names of the headers by prefix, so that no request has to make them. */
const namesByPrefix = new Map<string, HeaderNames>()

/** The name of a header, in lower case: `svc-basin`. */
export function vendorHeaderName(headerPrefix: string, header: VendorHeader): string {
  let names = namesByPrefix.get(headerPrefix)
  if (names === undefined) {
    names = Object.fromEntries(VENDOR_HEADERS.map((one) => [one, `${headerPrefix}-${one}`])) as HeaderNames
    namesByPrefix.set(headerPrefix, names)
  }
  return names[header]
}

/**
 * The header of an append with a producer or a `streamSeq`, and of its response (docs/protocol.md
 * "Producers"). Other servers ignore it, and their responses do not have it.
 */
export const APPEND_HEADER = 'headwater-append'

/** The value of the header of a response: how the batch was stored. */
export type AppendHeaderReply = 'stored' | 'duplicate'

/**
 * The `match_seq_num` in the body of an append whose header has the condition that counts. No stream has this
 * tail, so a server that ignores the header rejects the append instead of storing it without a check.
 */
export const UNMATCHED_SEQ_NUM = INTEGER_MAX
