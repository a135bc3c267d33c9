/** Standard base64 in plain JavaScript, for platforms without a native codec (wire-behaviour.md 7.2). */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const NO_DIGIT = 0xff
const CODE_OF_DIGIT = new TextEncoder().encode(ALPHABET)
const DIGIT_OF_CODE = digitTable()
const EQUALS = 0x3d
const ascii = new TextDecoder()

/** Decodes, or returns undefined unless the text is exactly what {@link encodePortable} makes of some bytes. */
export function decodePortable(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined
  const padding = paddingOf(text)
  const bytes = new Uint8Array((text.length / 4) * 3 - padding)
  const digits = text.length - padding
  let at = 0
  let group = 0
  for (let i = 0; i < digits; i++) {
    const digit = DIGIT_OF_CODE[text.charCodeAt(i)] ?? NO_DIGIT
    if (digit === NO_DIGIT) return undefined
    group = (group << 6) | digit
    if (i % 4 !== 3) continue
    bytes[at++] = group >> 16
    bytes[at++] = group >> 8
    bytes[at++] = group
    group = 0
  }
  if (padding === 1) {
    if ((group & 0b11) !== 0) return undefined
    bytes[at++] = group >> 10
    bytes[at++] = group >> 2
  } else if (padding === 2) {
    if ((group & 0b1111) !== 0) return undefined
    bytes[at++] = group >> 4
  }
  return bytes
}

export function encodePortable(bytes: Uint8Array): string {
  const codes = new Uint8Array(Math.ceil(bytes.length / 3) * 4)
  const rest = bytes.length % 3
  const whole = bytes.length - rest
  let at = 0
  for (let i = 0; i < whole; i += 3) {
    at = writeGroup(codes, at, (bytes[i]! << 16) | (bytes[i + 1]! << 8) | bytes[i + 2]!)
  }
  if (rest > 0) {
    writeGroup(codes, at, (bytes[whole]! << 16) | (rest === 2 ? bytes[whole + 1]! << 8 : 0))
    codes.fill(EQUALS, codes.length - (3 - rest))
  }
  return ascii.decode(codes)
}

function writeGroup(codes: Uint8Array, at: number, group: number): number {
  codes[at] = CODE_OF_DIGIT[group >> 18]!
  codes[at + 1] = CODE_OF_DIGIT[(group >> 12) & 63]!
  codes[at + 2] = CODE_OF_DIGIT[(group >> 6) & 63]!
  codes[at + 3] = CODE_OF_DIGIT[group & 63]!
  return at + 4
}

/** How many `=` the text ends in, of the two that it may. */
export function paddingOf(text: string): number {
  if (!text.endsWith('=')) return 0
  return text.endsWith('==') ? 2 : 1
}

function digitTable(): Uint8Array {
  const table = new Uint8Array(128).fill(NO_DIGIT)
  for (let digit = 0; digit < CODE_OF_DIGIT.length; digit++) table[CODE_OF_DIGIT[digit]!] = digit
  return table
}
