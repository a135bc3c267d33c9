import { encodeBase64 } from '../../src/model/base64.ts'
import type { RedactedKey } from '../../src/model/encryption-key.ts'

/** No cipher has longer keys. */
const KEY_BYTES_MAX = 33

/** The text of a header with the key; undefined for a malformed one, as if none was given. */
export function keyHeaderText(key: RedactedKey): string | undefined {
  return key.key(KeyHeader.of).value
}

/** The value of a header, out of reach of logs that print an object. */
class KeyHeader {
  readonly #value: string | undefined

  private constructor(value: string | undefined) {
    this.#value = value
  }

  static of(this: void, given: string | Uint8Array | undefined): KeyHeader {
    const text =
      given instanceof Uint8Array ? encodeBase64(given.subarray(0, KEY_BYTES_MAX + 1)) : given?.trim()
    return new KeyHeader(text !== undefined && /^[A-Za-z0-9+/=]{1,44}$/.test(text) ? text : undefined)
  }

  get value(): string | undefined {
    return this.#value
  }
}
