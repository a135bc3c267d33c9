import { textOf } from '../../src/model/bytes.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { vendorHeader, wordOfRequest } from '../../src/wire/vendor-headers.ts'
import { type VendorHeader, vendorHeaderName } from '../../src/wire/words.ts'

/**
 * The text of a vendor header. `Headers` gives one character for each byte, so that text beyond ASCII, which is UTF-8, is still to be
 * decoded. Throws 400 `bad_header` when it is not UTF-8, or when two words give different values.
 */
export function headerText(
  headers: Headers,
  header: VendorHeader,
  words: readonly string[],
): string | undefined {
  const value = vendorHeader(headers, header, words)
  if (value === undefined || !/[\x80-\xff]/.test(value)) return value
  const text = textOf(Uint8Array.from(value, (character) => character.charCodeAt(0)))
  if (text === undefined) {
    throw invalidHeader(vendorHeaderName(wordOfRequest(headers, words), header), 'not UTF-8')
  }
  return text
}

export function invalidHeader(name: string, problem: string): HeadwaterError {
  return new HeadwaterError('bad_header', `Invalid header \`${name}\`: ${problem}`, { field: name })
}
