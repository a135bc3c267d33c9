import { corrupt, mapFileErrors } from './errors.ts'
import { decodeHeader, FILE_HEADER_BYTES, type FileHeader, type FileIdentity } from './file-header.ts'
import type { File, Files } from './files.ts'
import { FRAME_HEADER_BYTES, framePayload, payloadEnd } from './frame.ts'

const WINDOW_BYTES = 1_048_576

/** Reads a file from beginning to end in large pieces. */
export class SequentialReader {
  readonly name: string
  readonly size: number
  readonly #file: File
  readonly #keepsWindows: boolean
  #buffer: Buffer = Buffer.alloc(0)
  #window: Buffer = this.#buffer
  #windowStart = 0
  #offset = 0

  private constructor(name: string, file: File, size: number, keepsWindows: boolean) {
    this.name = name
    this.#file = file
    this.size = size
    this.#keepsWindows = keepsWindows
  }

  /** Opens a file. With `keepsWindows`, views stay valid, and each keeps its window in memory. */
  static async open(files: Files, name: string, keepsWindows = false): Promise<SequentialReader> {
    const file = await mapFileErrors(files.open(name, 'read'))
    try {
      return new SequentialReader(name, file, await mapFileErrors(file.size()), keepsWindows)
    } catch (error) {
      await file.close().catch(() => {})
      throw error
    }
  }

  get offset(): number {
    return this.#offset
  }

  skip(count: number): void {
    this.#offset += count
  }

  /**
   * The next bytes without consuming them; fewer than asked for at the end of the file. A view, valid until
   * the next call by default.
   */
  async peek(count: number): Promise<Buffer> {
    const wanted = Math.min(count, this.size - this.#offset)
    if (wanted <= 0) return Buffer.alloc(0)
    const end = this.#offset + wanted
    if (this.#offset < this.#windowStart || end > this.#windowStart + this.#window.length) {
      const length = Math.min(Math.max(wanted, WINDOW_BYTES), this.size - this.#offset)
      if (this.#keepsWindows || length > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(length)
      const filled = await mapFileErrors(this.#file.read(this.#buffer.subarray(0, length), this.#offset))
      this.#window = this.#buffer.subarray(0, filled)
      this.#windowStart = this.#offset
    }
    const start = this.#offset - this.#windowStart
    return this.#window.subarray(start, start + wanted)
  }

  /** Reads the header. It must match the file's name unless `expected` says otherwise. */
  async header(expected?: FileIdentity): Promise<FileHeader> {
    const header = decodeHeader(await this.peek(FILE_HEADER_BYTES), this.name, expected)
    this.skip(FILE_HEADER_BYTES)
    return header
  }

  /**
   * Reads the payload of the next frame, which has at most `bytesMax` bytes with its header: a view like that
   * of {@link peek}. Undefined at the end of the file.
   */
  async frame(salt: number, bytesMax: number): Promise<Buffer | undefined> {
    if (this.#offset >= this.size) return undefined
    const length = payloadEnd(await this.peek(FRAME_HEADER_BYTES), 0)
    const isPossible = length <= bytesMax && length <= this.size - this.#offset
    const bytes = isPossible ? await this.peek(length) : undefined
    const payload = bytes && framePayload(bytes, 0, salt)
    if (payload === undefined) throw corrupt(this.name, this.#offset, 'a frame is incomplete or damaged')
    this.skip(length)
    return payload
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}
