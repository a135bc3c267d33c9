const encoder = new TextEncoder()
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lossyDecoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** An empty array, which everything without bytes shares. */
export const EMPTY_BYTES: Uint8Array = new Uint8Array(0)

/**
 * Arrays of up to this length have no buffer until they are asked for one: engines allocate them faster than
 * views.
 */
export const UNBUFFERED_BYTES_MAX = 64

/** The length up to which a loop is faster than a call of the encoder. */
const LOOP_LENGTH_MAX = 64

/** The UTF-8 encoding of a text. */
export function utf8(text: string): Uint8Array {
  const { length } = text
  if (length === 0) return EMPTY_BYTES
  if (length > LOOP_LENGTH_MAX) return encoder.encode(text)
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0x80) return encoder.encode(text)
    bytes[i] = unit
  }
  return bytes
}

/** Writes the UTF-8 encoding of a text. Needs room for three bytes a character. Returns the length. */
export function utf8Into(text: string, bytes: Uint8Array, start: number): number {
  return encoder.encodeInto(text, bytes.subarray(start)).written
}

/** The length of a text in UTF-8. A lone surrogate counts as U+FFFD: 3 bytes. */
export function utf8Length(text: string): number {
  return utf8(text).length
}

/** Decodes UTF-8, or returns undefined if the bytes are not UTF-8. Keeps a leading byte order mark. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return strictDecoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** Decodes UTF-8 with U+FFFD for each ill-formed part (docs/protocol.md "Data format"). Never throws. */
export function lossyTextOf(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : lossyDecoder.decode(bytes)
}

/** Whether two arrays have the same bytes. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}

/** Whether two secrets have the same bytes, in a time that does not depend on where they differ. */
export function equalSecrets(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ (b[i] ?? 0)
  return difference === 0
}

/** Concatenates arrays. The result of a single one is that array itself, not a copy. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!
  let length = 0
  for (const part of parts) length += part.length
  const whole = new Uint8Array(length)
  let offset = 0
  for (const part of parts) {
    whole.set(part, offset)
    offset += part.length
  }
  return whole
}

/** Compares strings by their UTF-8 bytes, which is by code point. `<` differs from it on surrogate pairs. */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x === y) continue
    const xIsSurrogate = x >= 0xd800 && x <= 0xdfff
    const yIsSurrogate = y >= 0xd800 && y <= 0xdfff
    if (xIsSurrogate !== yIsSurrogate) return xIsSurrogate ? 1 : -1
    return x - y
  }
  return a.length - b.length
}
