import { equalBytes, lossyTextOf, utf8 } from '../model/bytes.ts'
import type { Header } from '../model/record.ts'
import { ORIGIN_HEADER } from './outbox-log.ts'
import type { RecordOrigin } from './synced-record.ts'

const NAME = utf8(ORIGIN_HEADER)

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
  const header = headers.find(isOriginHeader)
  return header && parseOrigin(lossyTextOf(header[1]))
}

/** Returns the origin in the value of the header, which is also the key of the record. */
export function parseOrigin(value: string): SecretOrigin | undefined {
  const match = /^([\w-]{1,64})\/(0|[1-9]\d{0,15})\/([\w-]{1,64})$/.exec(value)
  return match === null ? undefined : { device: match[1]!, number: Number(match[2]), nonce: match[3]! }
}

/** Returns the headers without the one that identifies the record. */
export function withoutOrigin(headers: readonly Header[]): readonly Header[] {
  return headers.some(isOriginHeader) ? headers.filter((header) => !isOriginHeader(header)) : headers
}

function isOriginHeader([name]: Header): boolean {
  return equalBytes(name, NAME)
}
