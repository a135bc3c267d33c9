import { equalBytes, lossyTextOf, utf8 } from '../model/bytes.ts'
import type { Header } from '../model/record.ts'
import type { RecordOrigin } from './synced-record.ts'

/** The name of the header that identifies a record on the server (docs/protocol.md "Origin header"). */
export const ORIGIN_HEADER = 'headwater-origin'

/** The size of that header, in metered bytes. */
export const ORIGIN_METERED_BYTES = 64

const NAME = utf8(ORIGIN_HEADER)
const FORM = /^([\w-]{1,64})\/(0|[1-9]\d{0,15})\/([\w-]{1,64})$/

/**
 * The origin of a record with the nonce of its append, which only the device knows until the record is
 * stored. Another writer of the stream cannot forge the origin of a record that is not stored yet.
 */
export interface SecretOrigin extends RecordOrigin {
  readonly nonce: string
}

/** Returns the value of the header: `<device>/<number>/<nonce>`. */
export function originValue({ device, number, nonce }: SecretOrigin): string {
  return `${device}/${number}/${nonce}`
}

/** Returns the header that identifies a record. */
export function originHeader(origin: SecretOrigin): Header {
  return [NAME, utf8(originValue(origin))]
}

/** Returns the origin that the headers of a record name, or undefined if they name none. */
export function originOf(headers: readonly Header[]): SecretOrigin | undefined {
  const [, value] = headers.find(isOriginHeader) ?? []
  const match = value && FORM.exec(lossyTextOf(value))
  return match ? { device: match[1]!, number: Number(match[2]), nonce: match[3]! } : undefined
}

/** Returns the headers without the one that identifies the record. */
export function withoutOrigin(headers: readonly Header[]): readonly Header[] {
  return headers.some(isOriginHeader) ? headers.filter((header) => !isOriginHeader(header)) : headers
}

function isOriginHeader([name]: Header): boolean {
  return equalBytes(name, NAME)
}
