/** Smaller reads are left to the garbage collector. */
const POOLED_BYTES_MIN = 256 * 1024
/** Lengths are rounded up, so that reads of about the same length share buffers. */
const STEP_BYTES = 256 * 1024
/** The most that waits for the next reads, in bytes. */
const FREE_BYTES_MAX = 8 * 1_048_576

/**
 * Memory for large reads. V8 collects its whole heap after every few dozen MiB of new buffers, which takes
 * longer than reading them from the page cache. A buffer that is never given back is collected as usual.
 */
export class ReadBuffers {
  readonly #free: Buffer<ArrayBuffer>[] = []
  #freeBytes = 0

  /** Returns a buffer of this length, whose content is undefined and whose memory beyond it is zero. */
  take(length: number): Buffer<ArrayBuffer> {
    if (length < POOLED_BYTES_MIN) return Buffer.allocUnsafeSlow(length)
    const capacity = Math.ceil(length / STEP_BYTES) * STEP_BYTES
    const index = this.#free.findIndex((buffer) => buffer.length === capacity)
    const buffer = index === -1 ? Buffer.allocUnsafeSlow(capacity) : this.#free.splice(index, 1)[0]!
    this.#freeBytes -= index === -1 ? 0 : capacity
    return buffer.fill(0, length).subarray(0, length)
  }

  /** Takes a buffer back, to which nothing else may refer. */
  giveBack({ buffer }: Buffer<ArrayBuffer>): void {
    this.#free.push(Buffer.from(buffer))
    this.#freeBytes += buffer.byteLength
    // The oldest may have a length that no read has any more.
    while (this.#freeBytes > FREE_BYTES_MAX) this.#freeBytes -= this.#free.shift()!.length
  }
}

/** Whether a buffer that was taken can be given back. */
export function isPooled({ length }: Buffer): boolean {
  return length >= POOLED_BYTES_MIN
}
