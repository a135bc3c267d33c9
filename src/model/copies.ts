import { EMPTY_BYTES, utf8 } from './bytes.ts'

/** One allocation for each small copy would take longer than the rest of appending a record. */
const SHARED_BYTES = 16_384
/** Longer copies have memory of their own, because they would waste the end of what is shared. */
const SMALL_LENGTH_MAX = SHARED_BYTES / 4

/** Memory for the next small copies, which stays as long as one of them is in use. */
let shared = EMPTY_BYTES
let used = 0
const encoder = new TextEncoder()

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
