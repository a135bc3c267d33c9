import { equalBytes, lossyTextOf, utf8 } from '../model/bytes.ts'
import type { Header } from '../model/record.ts'
import { ORIGIN_HEADER } from './outbox-log.ts'
import type { RecordOrigin } from './synced-record.ts'

const NAME = utf8(ORIGIN_HEADER)

/** Returns the value of the header: `<device>/<number>`. */
export function originValue({ device, number }: RecordOrigin): string {
  return `${device}/${number}`
}

/** Returns the header that identifies a record. */
export function originHeader(origin: RecordOrigin): Header {
  return [NAME, utf8(originValue(origin))]
}

/** Returns the origin that the headers of a record name, or undefined if they name none. */
export function originOf(headers: readonly Header[]): RecordOrigin | undefined {
  const header = headers.find(isOriginHeader)
  return header && parseOrigin(lossyTextOf(header[1]))
}

/** Returns the origin in the value of the header, which is also the key of the record. */
export function parseOrigin(value: string): RecordOrigin | undefined {
  const match = /^([\w-]{1,64})\/(0|[1-9]\d{0,15})$/.exec(value)
  return match === null ? undefined : { device: match[1]!, number: Number(match[2]) }
}

/** Returns the headers without the one that identifies the record. */
export function withoutOrigin(headers: readonly Header[]): readonly Header[] {
  return headers.some(isOriginHeader) ? headers.filter((header) => !isOriginHeader(header)) : headers
}

function isOriginHeader([name]: Header): boolean {
  return equalBytes(name, NAME)
}
