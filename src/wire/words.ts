/** The words that stand in header names and in the session content type, accepted by default (rulings.md "Words on the wire"). */
export const VENDOR_WORDS: readonly string[] = ['svc', 's2']

/** The word of a response whose request used none. */
export const DEFAULT_VENDOR_WORD = 'svc'

/** The headers whose names begin with the vendor word (wire-behaviour.md 1.9). */
export const VENDOR_HEADERS = [
  'basin',
  'encryption-key',
  'format',
  'provision-result',
  'request-token',
  'stream-config',
] as const

export type VendorHeader = (typeof VENDOR_HEADERS)[number]

/** The name of a header, in lower case: `svc-basin`. */
export function vendorHeaderName(word: string, header: VendorHeader): string {
  return `${word}-${header}`
}

/** The content type of binary sessions: `svcs/proto`. */
export function sessionContentType(word: string): string {
  return `${word}s/proto`
}
