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
