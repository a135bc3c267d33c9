import { type FileHandle, open } from 'node:fs/promises'
import { CliError } from './failure.ts'
import { printable, retold } from './printable.ts'

/** A compressed file may be short, and yet take long: its progress is told in steps of so much. */
const CHUNK_BYTES = 64 * 1024

/** What an import reads. */
export interface ImportFile {
  /** In bytes; undefined for what is no ordinary file: a pipe gives what it has once, and does not say how much. */
  readonly size: number | undefined
  /** From its beginning, as often as one likes if it has a size. */
  read(): AsyncGenerator<Uint8Array>
  close(): Promise<void>
}

/** @throws CliError, as reading does. */
export async function openImportFile(path: string): Promise<ImportFile> {
  let file: FileHandle | undefined
  try {
    file = await open(path, 'r')
    const stats = await file.stat()
    return new OpenFile(file, path, stats.isFile() ? stats.size : undefined)
  } catch (error) {
    await file?.close()
    throw unreadable(path, error)
  }
}

class OpenFile implements ImportFile {
  readonly #file: FileHandle
  readonly #path: string
  readonly size: number | undefined

  constructor(file: FileHandle, path: string, size: number | undefined) {
    this.#file = file
    this.#path = path
    this.size = size
  }

  async *read(): AsyncGenerator<Uint8Array> {
    // Positions only where there are some: reading from the beginning is repeated in spite of what was read.
    const start = this.size === undefined ? undefined : 0
    const options = { highWaterMark: CHUNK_BYTES, autoClose: false, ...(start !== undefined && { start }) }
    try {
      for await (const chunk of this.#file.createReadStream(options)) yield chunk
    } catch (error) {
      throw unreadable(this.#path, error)
    }
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}

function unreadable(path: string, error: unknown): CliError {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return new CliError(1, `there is no file ${printable(path)}`)
  return new CliError(1, `cannot read ${printable(path)}: ${retold(message, path)}`)
}
