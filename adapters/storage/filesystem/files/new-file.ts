import { encodeHeader, type FileKind, fileName, newHeader, temporaryName } from './file-header.ts'
import type { File, Files } from './files.ts'

const PIECE_BYTES = 1_048_576

/**
 * A segment or checkpoint while it is written, front to back in large pieces. It gets its name once it is
 * complete.
 */
export class NewFile {
  readonly number: number
  readonly salt: number
  readonly #files: Files
  readonly #name: string
  readonly #file: File
  #pieces: Uint8Array[] = []
  /** The buffer of a write. Reused, so that a segment does not leave its own length in garbage. */
  #joined: Buffer = Buffer.alloc(0)
  #pending = 0
  #written = 0
  #isClosed = false

  private constructor(files: Files, name: string, file: File, number: number, salt: number) {
    this.#files = files
    this.#name = name
    this.#file = file
    this.number = number
    this.salt = salt
  }

  static async create(files: Files, kind: FileKind, number: number): Promise<NewFile> {
    const header = newHeader(kind, number)
    const name = fileName(kind, number)
    const file = await files.open(temporaryName(name), 'create')
    const made = new NewFile(files, name, file, number, header.salt)
    made.add(encodeHeader(header))
    return made
  }

  /** The length of the file, including what is not written yet. */
  get length(): number {
    return this.#written + this.#pending
  }

  /** Adds bytes that must not change before {@link drain}. */
  add(bytes: Uint8Array): void {
    this.#pieces.push(bytes)
    this.#pending += bytes.length
  }

  /** Writes the added bytes if there are at least `atLeast`. */
  async drain(atLeast = PIECE_BYTES): Promise<void> {
    if (this.#pending < atLeast || this.#pending === 0) return
    const bytes = this.#join()
    await this.#file.write(bytes, this.#written)
    this.#written += bytes.length
  }

  #join(): Buffer {
    if (this.#joined.length < this.#pending) this.#joined = Buffer.allocUnsafeSlow(this.#pending)
    let length = 0
    for (const piece of this.#pieces) {
      this.#joined.set(piece, length)
      length += piece.length
    }
    this.#pieces = []
    this.#pending = 0
    return this.#joined.subarray(0, length)
  }

  /** Writes the rest and renames the file. It is durable once the directory is synced. */
  async finish(): Promise<void> {
    await this.drain(1)
    await this.#file.datasync()
    await this.#close()
    await this.#files.rename(temporaryName(this.#name), this.#name)
  }

  async abandon(): Promise<void> {
    await this.#close().catch(() => {})
    await this.#files.unlink(temporaryName(this.#name)).catch(() => {})
  }

  /** Closes once, even if that fails: the system reuses the descriptor. */
  async #close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#file.close()
  }
}
