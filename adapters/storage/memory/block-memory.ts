import { UNBUFFERED_BYTES_MAX } from '../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'

/** The size of the buffers that small blocks share. */
const SHARED_BYTES = 8_192
/** Larger blocks would waste the ends of shared buffers. */
const SHARED_BLOCK_BYTES_MAX = 2_048

/**
 * Memory for small blocks. They share buffers, because a buffer of its own costs a block of 1 KiB more than
 * the rest of an append.
 */
export class BlockMemory {
  #shared = new ArrayBuffer(0)
  #used = 0

  allocate(bytes: number): Uint8Array {
    if (bytes > SHARED_BLOCK_BYTES_MAX) return new Uint8Array(bytes)
    if (this.#used + bytes > this.#shared.byteLength) {
      this.#shared = new ArrayBuffer(SHARED_BYTES)
      this.#used = 0
    }
    this.#used += bytes
    return new Uint8Array(this.#shared, this.#used - bytes, bytes)
  }
}

/** Copies the data of a block that is a view of a large buffer, which it would keep in memory. */
export function inSmallBuffer(block: StoredBlock): StoredBlock {
  const { data } = block
  // Asking for the buffer of a short array would create one.
  const isShort = data.length <= UNBUFFERED_BYTES_MAX
  if (!isShort && data.buffer.byteLength <= Math.max(data.length, SHARED_BYTES)) return block
  // Not `slice`, which returns a view for a Node `Buffer`.
  return { ...block, data: new Uint8Array(data) }
}
