import { type FileHandle, open, rm, writeFile } from 'node:fs/promises'
import { ExportProgress } from './export-progress.ts'
import { linesOf, takeLine } from './lines.ts'
import { TransferError } from './transfer-error.ts'

/** The file of an export that is being written. */
export class ExportFile {
  /** How far the file goes. */
  readonly progress: ExportProgress
  readonly #file: FileHandle
  readonly #path: string

  private constructor(file: FileHandle, path: string, progress: ExportProgress) {
    this.#file = file
    this.#path = path
    this.progress = progress
  }

  /** Creates a file, which only its owner can read. Rejects with {@link TransferError} if it exists. */
  static async create(path: string): Promise<ExportFile> {
    try {
      // Encrypted records are decrypted in it.
      return new ExportFile(await open(path, 'wx', 0o600), path, new ExportProgress())
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fileError(path, error)
      throw new TransferError(`${path} already exists; \`--resume\` continues one that is not compressed`)
    }
  }

  /**
   * Opens a file to continue after its last complete line. Creates a missing file. A complete export and
   * another kind of file stay unchanged.
   */
  static async resume(path: string): Promise<ExportFile> {
    const file = await open(path, 'a+', 0o600).catch((error: unknown) => {
      throw fileError(path, error)
    })
    try {
      const progress = new ExportProgress()
      let end = 0
      for await (const lines of linesOf(file.createReadStream({ start: 0, autoClose: false }))) {
        for (const line of lines) {
          takeLine(line, progress)
          end = line.end
        }
      }
      if (progress.header === undefined && (await file.stat()).size > 0) {
        throw new TransferError('not a file that an export can continue')
      }
      if (!progress.isComplete) await file.truncate(end)
      return new ExportFile(file, path, progress)
    } catch (error) {
      await file.close()
      if (error instanceof TransferError) throw new TransferError(`${path}: ${error.message}`)
      throw fileError(path, error)
    }
  }

  /** Appends lines. Resolves when they are durable. */
  async write(lines: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      await writeFile(this.#file, lines)
      await this.#file.sync()
    } catch (error) {
      throw error instanceof TransferError ? error : fileError(this.#path, error)
    }
  }

  /** Closes the file, and removes one without a stream: the next attempt may create it. */
  async close(): Promise<void> {
    await this.#file.close()
    const { stream, counts, isComplete } = this.progress
    if (stream === undefined && counts.streams === 0 && !isComplete) await rm(this.#path, { force: true })
  }
}

function fileError(path: string, cause: unknown): TransferError {
  return new TransferError(`cannot access ${path}: ${(cause as Error).message}`, { cause })
}
