/** Each piece of shared memory is twice as long as the one before, so that a batch of a few bytes holds little more than these. */
const FIRST_BYTES = 256
const PIECE_BYTES_MAX = 64 * 1024
/** Longer ones get memory of their own: little is gained, and the end of what is shared would be wasted. */
const COPY_BYTES_MAX = PIECE_BYTES_MAX / 8

/**
 * Copies of many small byte arrays that live and go together, as those of a batch: an allocation for each would take longer than all the rest that
 * appending a record does.
 */
export class SharedCopies {
  #shared = new Uint8Array(0)
  #used = 0

  of(bytes: Uint8Array): Uint8Array {
    const { length } = bytes
    if (length > COPY_BYTES_MAX) return new Uint8Array(bytes)
    if (this.#used + length > this.#shared.length) {
      const doubled = Math.max(FIRST_BYTES, 2 * this.#shared.length, 2 * length)
      this.#shared = new Uint8Array(Math.min(doubled, PIECE_BYTES_MAX))
      this.#used = 0
    }
    const copy = this.#shared.subarray(this.#used, this.#used + length)
    copy.set(bytes)
    this.#used += length
    return copy
  }
}
