import { HeadwaterError } from '../model/errors.ts'

/** How JSON strings stand for the bytes of header names, header values and bodies (wire-behaviour.md 7.1). */
export type DataFormat = 'raw' | 'base64'

/** Reads the value of the `svc-format` header, or whatever its `name` in the request is; absent is `raw`. Throws 400 `bad_header`. */
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
