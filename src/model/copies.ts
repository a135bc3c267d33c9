import { EMPTY_BYTES, utf8, utf8Into } from './bytes.ts'

/** One allocation for each small copy would take longer than the rest of appending a record. */
const SHARED_BYTES = 16_384
/** Longer copies have memory of their own, because they would waste the end of what is shared. */
const SMALL_BYTES_MAX = SHARED_BYTES / 8

/** Memory for the next small copies, which stays as long as one of them is in use. */
let shared = EMPTY_BYTES
let used = 0

/** A copy of the bytes. */
export function copiedBytes(bytes: Uint8Array): Uint8Array {
  const { length } = bytes
  // Not `slice`, which would not copy a Node `Buffer`.
  if (length > SMALL_BYTES_MAX) return new Uint8Array(bytes)
  reserve(length)
  shared.set(bytes, used)
  return take(length)
}

/** The UTF-8 encoding of a text. */
export function copiedText(text: string): Uint8Array {
  const bytesMax = 3 * text.length
  if (bytesMax > SMALL_BYTES_MAX) return utf8(text)
  reserve(bytesMax)
  return take(utf8Into(text, shared, used))
}

function reserve(length: number): void {
  if (used + length <= shared.length) return
  shared = new Uint8Array(SHARED_BYTES)
  used = 0
}

function take(length: number): Uint8Array {
  const start = used
  used += length
  // Not `subarray`, which takes longer.
  return new Uint8Array(shared.buffer, start, length)
}
