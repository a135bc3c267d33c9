const PIECE_BYTES_MAX = 16_384
/** Longer arrays get memory of their own, because they would waste the end of a piece. */
const SHARING_BYTES_MAX = PIECE_BYTES_MAX / 4
/** What a piece of this size may waste is not worth a copy. */
export const SMALL_PIECE_BYTES = 4_096

/**
 * Memory for the data of small blocks. They share pieces of up to 16 KiB, because a buffer of its own costs
 * more than the rest of appending a block.
 */
export class Arena {
  #piece: ArrayBuffer | undefined
  #used = 0
  #hasLargePiece = false

  /** Memory for a block, in a piece of at most `pieceBytesMax` bytes if it is worth sharing. */
  allocate(bytes: number, pieceBytesMax: number): Uint8Array {
    if (bytes > SHARING_BYTES_MAX) return new Uint8Array(bytes)
    if (this.#piece === undefined || this.#used + bytes > this.#piece.byteLength) {
      const pieceBytes = Math.min(pieceBytesMax, PIECE_BYTES_MAX)
      if (pieceBytes < 2 * bytes) return new Uint8Array(bytes)
      this.#piece = new ArrayBuffer(pieceBytes)
      this.#used = 0
      if (pieceBytes > SMALL_PIECE_BYTES) this.#hasLargePiece = true
    }
    const start = this.#used
    this.#used += bytes
    return new Uint8Array(this.#piece, start, bytes)
  }

  /** Whether the array is part of the current piece. */
  has(data: Uint8Array): boolean {
    return data.buffer === this.#piece
  }

  /** Whether blocks with `heldBytes` bytes may retain much more memory, so that they should be copied. */
  wastes(heldBytes: number): boolean {
    return this.#hasLargePiece && heldBytes < SMALL_PIECE_BYTES
  }
}
