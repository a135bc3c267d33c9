import { corrupt, reading } from './failures.ts'
import { decodeHeader, FILE_HEADER_BYTES, type FileHeader, type FileIdentity } from './file-header.ts'
import type { File, Files } from './files.ts'
import { FRAME_HEADER_BYTES, frameEnd, framePayload } from './frame.ts'

const WINDOW_BYTES = 1_048_576

/** Reads a file from its beginning to its end in large pieces. */
export class SequentialReader {
  readonly name: string
  readonly size: number
  readonly #file: File
  /** Used again and again: a large checkpoint must not leave its length in garbage. */
  #buffer: Buffer = Buffer.alloc(0)
  #window: Buffer = this.#buffer
  #windowStart = 0
  #offset = 0

  private constructor(name: string, file: File, size: number) {
    this.name = name
    this.#file = file
    this.size = size
  }

  static async open(files: Files, name: string): Promise<SequentialReader> {
    const file = await reading(files.open(name, 'read'))
    try {
      return new SequentialReader(name, file, await reading(file.size()))
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

  /** The next bytes, without moving on; fewer than asked for at the end of the file. A view, good until the next call. */
  async peek(count: number): Promise<Buffer> {
    const wanted = Math.min(count, this.size - this.#offset)
    if (wanted <= 0) return Buffer.alloc(0)
    const end = this.#offset + wanted
    if (this.#offset < this.#windowStart || end > this.#windowStart + this.#window.length) {
      const length = Math.min(Math.max(wanted, WINDOW_BYTES), this.size - this.#offset)
      if (length > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(length)
      const filled = await reading(this.#file.read(this.#buffer.subarray(0, length), this.#offset))
      this.#window = this.#buffer.subarray(0, filled)
      this.#windowStart = this.#offset
    }
    const start = this.#offset - this.#windowStart
    return this.#window.subarray(start, start + wanted)
  }

  /** By default that of the file that its name says. */
  async header(expected?: FileIdentity): Promise<FileHeader> {
    const header = decodeHeader(await this.peek(FILE_HEADER_BYTES), this.name, expected)
    this.skip(FILE_HEADER_BYTES)
    return header
  }

  /** The payload of the next frame, of at most `bytesMax` with its header, a view like that of {@link peek}; undefined at the end of the file. */
  async frame(salt: number, bytesMax: number): Promise<Buffer | undefined> {
    if (this.#offset >= this.size) return undefined
    const length = frameEnd(await this.peek(FRAME_HEADER_BYTES), 0)
    const isPossible = length <= bytesMax && length <= this.size - this.#offset
    const bytes = isPossible ? await this.peek(length) : undefined
    const payload = bytes && framePayload(bytes, 0, salt)
    if (payload === undefined) throw corrupt(this.name, this.#offset, 'a frame is not whole')
    this.skip(length)
    return payload
  }

  /** For what was written without syncing. */
  async datasync(): Promise<void> {
    await reading(this.#file.datasync())
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}
