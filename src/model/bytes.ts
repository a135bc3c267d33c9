const encoder = new TextEncoder()
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lossyDecoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** An empty array for what stays inside: a caller could transfer the memory of it, and break all others. */
export const EMPTY_BYTES: Uint8Array = new Uint8Array(0)

/**
 * Arrays of up to this length have no buffer until they are asked for one: engines allocate them faster than
 * views. For texts of up to this length, a loop is faster than a call of the encoder.
 */
export const UNBUFFERED_BYTES_MAX = 64

/** The UTF-8 encoding of a text. */
export function utf8(text: string): Uint8Array {
  const { length } = text
  if (length > UNBUFFERED_BYTES_MAX) return encoder.encode(text)
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0x80) return encoder.encode(text)
    bytes[i] = unit
  }
  return bytes
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

/** The part of Node's class in use, which is several times as fast as what the Web has. */
interface NodeBuffer {
  from(text: string, encoding: 'base64'): Uint8Array
  from(bytes: ArrayBufferLike, start: number, length: number): { toString(encoding: 'base64'): string }
}

function nodeBuffer(): NodeBuffer | undefined {
  return (globalThis as { Buffer?: NodeBuffer | undefined }).Buffer
}

/** Short enough to be spread into arguments on every platform. */
const SPREAD_BYTES = 8_192

/** Encodes bytes as padded base64 with the standard alphabet (docs/protocol.md "Base64"). */
export function encodeBase64(bytes: Uint8Array): string {
  const { buffer, byteOffset, length } = bytes
  if (length === 0) return ''
  const node = nodeBuffer()
  if (node !== undefined) return node.from(buffer, byteOffset, length).toString('base64')
  let binary = ''
  for (let start = 0; start < length; start += SPREAD_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(start, start + SPREAD_BYTES))
  }
  return btoa(binary)
}

/**
 * Decodes strict base64, or returns undefined: padding and zero trailing bits are required, and white space
 * and the URL-safe alphabet are rejected.
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  try {
    const bytes = lenientBase64(text)
    // Only strict base64 is the encoding of its bytes.
    return encodeBase64(bytes) === text ? bytes : undefined
  } catch {
    return undefined
  }
}

/** Decodes base64 as the platform does: skips white space. Throws for other errors, or skips them too. */
export function lenientBase64(text: string): Uint8Array {
  const node = nodeBuffer()
  if (node !== undefined) {
    const { buffer, byteOffset, length } = node.from(text, 'base64')
    return new Uint8Array(buffer, byteOffset, length)
  }
  const characters = atob(text)
  const bytes = new Uint8Array(characters.length)
  // Not `Uint8Array.from`, which takes ten times as long.
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i)
  return bytes
}

// Copies of small texts and arrays

/** One allocation for each small copy would take longer than the rest of appending a record. */
const SHARED_BYTES = 16_384
/** Longer copies have memory of their own, because they would waste the end of what is shared. */
const SMALL_LENGTH_MAX = SHARED_BYTES / 4

/** Memory for the next small copies, which stays as long as one of them is in use. */
let shared = EMPTY_BYTES
let used = 0

export function copiedBytes(bytes: Uint8Array): Uint8Array {
  const { length } = bytes
  // Not `slice`, which would not copy a Node `Buffer`.
  if (length > SMALL_LENGTH_MAX) return new Uint8Array(bytes)
  if (used + length > shared.length) renew()
  shared.set(bytes, used)
  return take(length)
}

export function copiedText(text: string): Uint8Array {
  if (text.length > SMALL_LENGTH_MAX) return utf8(text)
  let { read, written } = encoder.encodeInto(text, shared.subarray(used))
  if (read < text.length) {
    renew()
    written = encoder.encodeInto(text, shared).written
  }
  return take(written)
}

function renew(): void {
  shared = new Uint8Array(SHARED_BYTES)
  used = 0
}

function take(length: number): Uint8Array {
  const start = used
  used += length
  // Not `subarray`, which takes longer.
  return new Uint8Array(shared.buffer, start, length)
}
