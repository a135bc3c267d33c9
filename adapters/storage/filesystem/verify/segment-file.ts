import { corrupt, reading } from '../failures.ts'
import type { File } from '../files.ts'

/** A chunk and an index are far smaller: a bound for what a damaged length can make us read. */
const PIECE_BYTES_MAX = 64 * 1_048_576

/** A segment that is open for reading. */
export class SegmentFile {
  readonly name: string
  readonly size: number
  readonly #file: File

  constructor(name: string, file: File, size: number) {
    this.name = name
    this.#file = file
    this.size = size
  }

  /** Rejects with `StorageFailure` when there is less, and with `RangeError` when it is too much to be true. */
  async read(offset: number, length: number): Promise<Buffer> {
    if (length > PIECE_BYTES_MAX) throw new RangeError(`${length} bytes are too many for one piece`)
    if (offset + length > this.size) throw corrupt(this.name, this.size, 'it is cut short')
    const bytes = Buffer.allocUnsafeSlow(length)
    const filled = await reading(this.#file.read(bytes, offset))
    if (filled < length) throw corrupt(this.name, offset + filled, 'it is cut short')
    return bytes
  }
}
