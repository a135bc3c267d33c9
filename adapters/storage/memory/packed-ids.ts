/** The bytes of an id that the engine draws, which is 32 hexadecimal digits. */
export const ID_BYTES = 16

const DIGITS = '0123456789abcdef'

/** Returns the bytes of an id; undefined if it is not of lower-case hexadecimal digits alone. */
export function bytesOfId(id: string): Uint8Array | undefined {
  if (id.length !== 2 * ID_BYTES) return undefined
  const bytes = new Uint8Array(ID_BYTES)
  for (let i = 0; i < ID_BYTES; i++) {
    const high = digitOf(id.charCodeAt(2 * i))
    const low = digitOf(id.charCodeAt(2 * i + 1))
    if (high < 0 || low < 0) return undefined
    bytes[i] = 16 * high + low
  }
  return bytes
}

export function idOfBytes(bytes: Uint8Array): string {
  const digits: number[] = []
  for (const byte of bytes) digits.push(DIGITS.charCodeAt(byte >> 4), DIGITS.charCodeAt(byte & 15))
  // A concatenated string would keep its parts.
  return String.fromCharCode(...digits)
}

/** The value of a digit; -1 if it is none. */
function digitOf(unit: number): number {
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30
  return unit >= 0x61 && unit <= 0x66 ? unit - 0x57 : -1
}
