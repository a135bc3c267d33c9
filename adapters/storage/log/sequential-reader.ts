import type { ReadableMedium } from '../media/medium.ts'
import { corrupt, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, frameBytes } from './format.ts'

const WINDOW_BYTES = 4 * 1_048_576

/** Reads a file from beginning to end in large pieces. Views stay valid, and keep their piece in memory. */
export class SequentialReader implements ReadableMedium {
  readonly name: string
  /** The length of the file. */
  readonly length: number
  readonly #medium: ReadableMedium
  #window: Buffer = Buffer.alloc(0)
  #start = 0

  constructor(medium: ReadableMedium, name: string, length: number) {
    this.#medium = medium
    this.name = name
    this.length = length
  }

  /** Resolves to so many bytes of the file; fewer at its end. */
  read(_name: string, position: number, length: number): Promise<Buffer> {
    return this.bytes(position, length)
  }

  /** Resolves to so many bytes from `offset` on; fewer at the end of the file. */
  async bytes(offset: number, count: number): Promise<Buffer> {
    const end = Math.min(offset + count, this.length)
    if (end <= offset) return Buffer.alloc(0)
    if (offset < this.#start || end > this.#start + this.#window.length) {
      const wanted = Math.min(Math.max(end - offset, WINDOW_BYTES), this.length - offset)
      this.#window = await this.#medium.read(this.name, offset, wanted)
      this.#start = offset
    }
    return this.#window.subarray(offset - this.#start, end - this.#start)
  }

  /** Resolves to the bytes of the frame at `offset`, as far as its header and the file go. */
  async frame(offset: number): Promise<Buffer> {
    const length = frameBytes(await this.bytes(offset, FRAME_HEADER_BYTES), 0)
    if (length > Math.min(FRAME_BYTES_MAX, this.length - offset)) {
      throw corrupt(this.name, offset, 'a frame is incomplete or damaged')
    }
    return this.bytes(offset, length)
  }
}
