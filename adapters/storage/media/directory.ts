import type { StorageFailure } from '../../../src/storage/errors.ts'
import type { File, Files, OpenMode } from './files.ts'
import { lostFile, type Medium, type MediumFile, MissingFile, mediumFailure, type NewFile } from './medium.ts'

const TEMPORARY = '.tmp'
/** Files that were read stay open, up to so many: opening one takes longer than a short read. */
const READERS_MAX = 64
/** Systems read less than 2 GiB at once. */
const READ_BYTES_MAX = 1_073_741_824

/**
 * Opens a medium in a directory that nothing else writes to. Removes what an earlier process left unfinished.
 */
export async function directoryMedium(files: Files): Promise<Medium> {
  return failing(async () => {
    for (const name of await files.list()) if (isTemporaryName(name)) await files.unlink(name)
    // A killed process may have left names that only the system's memory holds. Nothing may rest on them.
    await files.syncDirectory()
    return new DirectoryMedium(files)
  })
}

/** Whether the medium may have made a file of this name. */
export function isOfMedium(name: string): boolean {
  return isFinishedName(name) || isTemporaryName(name)
}

function isFinishedName(name: string): boolean {
  return /^((journal|segment|checkpoint)-\d{10}|reserve)$/.test(name)
}

function isTemporaryName(name: string): boolean {
  return name.endsWith(TEMPORARY) && isFinishedName(name.slice(0, -TEMPORARY.length))
}

/** The journal that grows. */
interface OpenJournal {
  readonly name: string
  readonly id: string | undefined
  readonly file: File
}

export class DirectoryMedium implements Medium {
  readonly #files: Files
  readonly #directory: { readonly name: string; readonly id: string | undefined }
  /** Files that are open for reads. The one that was read last is the last one. */
  readonly #readers = new Map<string, Promise<File>>()
  #journal: OpenJournal | undefined
  /** Why nothing more is written: a file may have its name at the next opening that does not count now. */
  #failure: StorageFailure | undefined

  constructor(files: Files) {
    this.#files = files
    this.#directory = { name: '.', id: files.idOf('.') }
  }

  list(): Promise<readonly MediumFile[]> {
    return failing(async () => {
      const names = (await this.#files.list()).filter(isFinishedName)
      const files = names.map(async (name) => {
        try {
          return [{ name, bytes: await this.#files.size(name) }]
        } catch (error) {
          // Removed meanwhile.
          if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
          throw error
        }
      })
      return (await Promise.all(files)).flat()
    })
  }

  read(name: string, position: number, length: number, memory?: Uint8Array): Promise<Buffer> {
    return failing(async () => {
      const buffer = bufferOf(length, memory)
      let filled = 0
      while (filled < length) {
        // The file may have been closed since the last part was read.
        const file = await this.#reader(name)
        const wanted = Math.min(length - filled, READ_BYTES_MAX)
        const { bytesRead } = await file.read(buffer, filled, wanted, position + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return buffer.subarray(0, filled)
    })
  }

  async append(name: string, position: number, piece: Uint8Array, isSynced: boolean): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (position === 0) return this.#createJournal(name, piece)
    const { file } = await this.#openJournal(name)
    try {
      await write(file, piece, position)
    } catch (error) {
      throw mediumFailure(error, await cutBack(file, position, isSynced))
    }
    try {
      if (isSynced) await file.datasync()
      this.assertInPlace()
    } catch (error) {
      // The system may take lost pages for written ones: only the next opening finds out.
      throw mediumFailure(error, false)
    }
  }

  async resume(name: string, position: number, lastPieces: Uint8Array): Promise<void> {
    const { file } = await this.#openJournal(name)
    await failing(async () => {
      await file.truncate(position + lastPieces.length)
      // Written again, because an earlier sync may have failed and dropped them from what the system writes.
      await write(file, lastPieces, position)
      await file.datasync()
    })
  }

  async create(name: string): Promise<NewFile> {
    // Another directory may have taken the place: nothing is written there.
    this.assertInPlace()
    const files = this.#files
    const temporary = name + TEMPORARY
    const file = await this.#open(temporary, 'create')
    let written = 0
    return {
      write: (bytes) =>
        failing(async () => {
          await write(file, bytes, written)
          written += bytes.length
        }),
      finish: async () => {
        await failing(async () => {
          await file.datasync()
          await file.close()
          this.assertInPlace()
          await files.rename(temporary, name)
        })
        try {
          await files.syncDirectory()
        } catch (error) {
          const isGone = await this.#undo(name)
          if (!isGone) this.#failure = mediumFailure(error, true)
          throw mediumFailure(error, isGone)
        }
      },
      async abandon() {
        await file.close().catch(() => {})
        await files.unlink(temporary).catch(() => {})
      },
    }
  }

  async remove(name: string): Promise<void> {
    this.assertInPlace()
    void this.#closeReader(name)
    await failing(async () => {
      await this.#files.unlink(name)
      // Some file systems do not use freed space before it is certain that it is free.
      await this.#files.syncDirectory()
    })
  }

  assertInPlace(): void {
    if (this.#failure !== undefined) throw this.#failure
    const { name, id } = this.#journal ?? this.#directory
    if (this.#files.idOf(name) !== id) throw lostFile(name)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#readers.keys()].map((name) => this.#closeReader(name)))
    await failing(async () => this.#journal?.file.close())
  }

  #reader(name: string): Promise<File> {
    const reader = this.#readers.get(name) ?? this.#open(name, 'read')
    this.#readers.delete(name)
    this.#readers.set(name, reader)
    reader.catch(() => this.#readers.get(name) === reader && this.#readers.delete(name))
    if (this.#readers.size > READERS_MAX) void this.#closeReader(this.#readers.keys().next().value!)
    return reader
  }

  async #closeReader(name: string): Promise<void> {
    const reader = this.#readers.get(name)
    this.#readers.delete(name)
    await reader?.then((file) => file.close()).catch(() => {})
  }

  async #createJournal(name: string, piece: Uint8Array): Promise<void> {
    this.assertInPlace()
    const file = await this.#open(name, 'create')
    try {
      await write(file, piece, 0)
      await file.datasync()
      await this.#files.syncDirectory()
    } catch (error) {
      await file.close().catch(() => {})
      throw mediumFailure(error, await this.#undo(name))
    }
    await this.#useJournal(name, file)
  }

  /** Removes a file that is not certain. Resolves to whether it is certainly gone. */
  #undo(name: string): Promise<boolean> {
    return this.remove(name).then(
      () => true,
      () => false,
    )
  }

  async #openJournal(name: string): Promise<OpenJournal> {
    if (this.#journal?.name === name) return this.#journal
    return this.#useJournal(name, await this.#open(name, 'update'))
  }

  async #useJournal(name: string, file: File): Promise<OpenJournal> {
    // It was synced when the next one was created.
    await this.#journal?.file.close().catch(() => {})
    this.#journal = { name, id: this.#files.idOf(name), file }
    return this.#journal
  }

  async #open(name: string, mode: OpenMode): Promise<File> {
    try {
      return await this.#files.open(name, mode)
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      throw isMissing ? new MissingFile(name) : mediumFailure(error, true)
    }
  }
}

/** The start of the memory if it is long enough, else new memory. */
function bufferOf(length: number, memory: Uint8Array | undefined): Buffer {
  if (memory === undefined || memory.length < length) return Buffer.allocUnsafeSlow(length)
  return Buffer.from(memory.buffer, memory.byteOffset, length)
}

async function write(file: File, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const left = bytes.length - written
    written += (await file.write(bytes, written, left, position + written)).bytesWritten
  }
}

/** Undoes a write that failed. Resolves to whether it certainly leaves nothing. */
async function cutBack(file: File, length: number, isSynced: boolean): Promise<boolean> {
  try {
    await file.truncate(length)
    if (isSynced) await file.datasync()
    return true
  } catch {
    return false
  }
}

async function failing<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw mediumFailure(error, true)
  }
}
