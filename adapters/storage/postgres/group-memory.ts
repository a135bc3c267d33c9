import { concatBytes } from '../../../src/model/bytes.ts'

const PIECE_BYTES = { first: 4_096, max: 65_536 }
/** Longer blocks get memory of their own, because they would waste the end of a piece. */
const SHARED_BYTES_MAX = PIECE_BYTES.first / 2

/**
 * Memory for the small blocks of one busy log. Blocks that follow each other lie side by side, so that a
 * group of them needs no copy.
 */
export class GroupMemory {
  #piece: ArrayBuffer | undefined
  #used = 0

  allocate(bytes: number): Uint8Array {
    if (bytes > SHARED_BYTES_MAX) return new Uint8Array(bytes)
    if (this.#piece === undefined || this.#used + bytes > this.#piece.byteLength) {
      const doubled = (this.#piece?.byteLength ?? 0) * 2
      this.#piece = new ArrayBuffer(Math.min(Math.max(doubled, PIECE_BYTES.first), PIECE_BYTES.max))
      this.#used = 0
    }
    const start = this.#used
    this.#used += bytes
    return new Uint8Array(this.#piece, start, bytes)
  }
}

/** Joins arrays, without a copy if they are adjacent. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const { buffer, byteOffset } = parts[0]!
  let end = byteOffset
  for (const part of parts) {
    if (part.buffer !== buffer || part.byteOffset !== end) return concatBytes(parts)
    end += part.length
  }
  return new Uint8Array(buffer, byteOffset, end - byteOffset)
}
