import { HeadwaterError } from '../model/errors.ts'

/** How JSON strings stand for the bytes of header names, header values and bodies (wire-behaviour.md 7.1). */
export type DataFormat = 'raw' | 'base64'

/** Reads the value of the `svc-format` header; absent is `raw`. Throws 400 `bad_header`. */
export function parseDataFormat(value: string | null | undefined): DataFormat {
  switch (value?.trim()) {
    case undefined:
    case 'raw':
    case 'json':
      return 'raw'
    case 'base64':
    case 'json-binsafe':
      return 'base64'
    default:
      throw new HeadwaterError('bad_header', 'Invalid format header: must be `raw` or `base64`', {
        field: 'format',
      })
  }
}
