import { randomBytes } from 'node:crypto'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { File, Files } from './files.ts'
import { lostFile, type Medium, type MediumFile, MissingFile, mediumFailure, type NewFile } from './medium.ts'

/** How many files that nothing reads stay open. */
const IDLE_FILES_MAX = 64
const WRITE_BYTES = 512 * 1024
const TEMPORARY = '.tmp'
/** The file that occupies the reserved space. */
export const RESERVE_NAME = 'reserve'
/**
 * How often the name of a journal is looked up that is not synced, in milliseconds: after every group, that
 * would make appends a tenth slower.
 */
const NAME_CHECK_INTERVAL_MS = 10

/**
 * Opens a medium in a directory that nothing else writes to. Removes what an earlier process left unfinished.
 */
export async function directoryMedium(files: Files): Promise<Medium> {
  try {
    const names = await files.list()
    for (const name of names) if (isTemporaryName(name)) await files.unlink(name)
    // A killed process may have left names that only the system's memory holds. Nothing may rest on them.
    await files.syncDirectory()
  } catch (error) {
    throw mediumFailure(error, true)
  }
  return new DirectoryMedium(files)
}

/** A medium in a directory that must not change, not even by removing what is unfinished. */
export function readOnlyDirectory(files: Files): Medium {
  return new DirectoryMedium(files)
}

/** Whether a file was never finished. */
export function isTemporaryName(name: string): boolean {
  return /^((journal|segment|checkpoint)-\d{10}|reserve)\.tmp$/.test(name)
}

class DirectoryMedium implements Medium {
  readonly #files: Files
  readonly #readers: OpenFiles
  /** The journal that grows. */
  #journal: { readonly name: string; readonly file: File } | undefined
  #nameCheckedAt = 0
  #lost: StorageFailure | undefined

  constructor(files: Files) {
    this.#files = files
    this.#readers = new OpenFiles(files)
  }

  async list(): Promise<readonly MediumFile[]> {
    return failing(async () => {
      const names = (await this.#files.list()).filter((name) => !isTemporaryName(name))
      const files = await Promise.all(names.map(async (name) => ({ name, bytes: await this.#sizeOf(name) })))
      return files.filter((file): file is MediumFile => file.bytes !== undefined)
    })
  }

  async read(name: string, position: number, length: number): Promise<Buffer> {
    return failing(() =>
      this.#readers.use(name, async (file) => {
        const buffer = Buffer.allocUnsafeSlow(length)
        const reading = file.read(buffer, position)
        const filled = typeof reading === 'number' ? reading : await reading
        return filled < length ? buffer.subarray(0, filled) : buffer
      }),
    )
  }

  async append(name: string, position: number, piece: Uint8Array, isSynced: boolean): Promise<void> {
    if (this.#lost !== undefined) throw this.#lost
    if (position === 0) return this.#createJournal(name, piece)
    const file = await this.#openJournal(name)
    try {
      await file.write(piece, position)
    } catch (error) {
      throw mediumFailure(error, await cutBack(file, position, isSynced))
    }
    try {
      if (isSynced) await file.datasync()
    } catch (error) {
      // The system may take lost pages for written ones: only the next opening finds out.
      throw mediumFailure(error, false)
    }
    const lost = this.#lostJournal(isSynced)
    if (lost !== undefined) throw mediumFailure(lost, await cutBack(file, position, isSynced))
  }

  async sync(name: string): Promise<void> {
    const file = await this.#openJournal(name)
    await failing(() => file.datasync())
  }

  async resume(name: string, lastPiece: number, end: number): Promise<void> {
    const file = await this.#openJournal(name)
    await failing(async () => {
      await file.truncate(end)
      // Written again, because an earlier sync may have failed and dropped it from what the system writes.
      const piece = Buffer.allocUnsafeSlow(end - lastPiece)
      const filled = await file.read(piece, lastPiece)
      await file.write(piece.subarray(0, filled), lastPiece)
      await file.datasync()
    })
  }

  async create(name: string): Promise<NewFile> {
    this.#assertDirectory()
    const file = await failing(() => this.#files.open(name + TEMPORARY, 'create'))
    return new NewDirectoryFile(this.#files, name, file, () => this.#assertDirectory())
  }

  async remove(name: string): Promise<void> {
    this.#assertDirectory()
    await this.#readers.forget(name)
    await failing(async () => {
      try {
        await this.#files.unlink(name)
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw error
      }
    })
  }

  async reserve(bytes: number): Promise<void> {
    if (((await failing(() => this.#sizeOf(RESERVE_NAME))) ?? 0) >= bytes) return
    const file = await this.create(RESERVE_NAME)
    try {
      for (let left = bytes; left > 0; left -= WRITE_BYTES) {
        // Random, because some file systems compress.
        await file.write(randomBytes(Math.min(WRITE_BYTES, left)))
      }
      await file.finish()
    } catch (error) {
      await file.abandon()
      throw error
    }
  }

  release(): Promise<boolean> {
    return releaseReserve(this.#files)
  }

  assertInPlace(): void {
    if (this.#lost !== undefined) throw this.#lost
    const lost = this.#journal && this.#lostJournal(true)
    if (lost !== undefined) throw lost
    this.#assertDirectory()
  }

  async close(): Promise<void> {
    await this.#readers.close()
    const journal = this.#journal
    this.#journal = undefined
    await failing(async () => journal?.file.close())
  }

  async #createJournal(name: string, piece: Uint8Array): Promise<void> {
    this.#assertDirectory()
    const before = this.#journal
    const file = await failing(() => this.#files.open(name, 'create'))
    try {
      await file.write(piece, 0)
      await file.datasync()
      await this.#files.syncDirectory()
    } catch (error) {
      await file.close().catch(() => {})
      throw mediumFailure(error, await this.#removeJournal(name))
    }
    this.#journal = { name, file }
    await before?.file.close().catch(() => {})
  }

  /** Resolves to whether the file is certainly gone. */
  async #removeJournal(name: string): Promise<boolean> {
    try {
      await this.#files.unlink(name)
      await this.#files.syncDirectory()
      return true
    } catch {
      return false
    }
  }

  async #openJournal(name: string): Promise<File> {
    if (this.#journal?.name === name) return this.#journal.file
    const file = await failing(async () => {
      try {
        return await this.#files.open(name, 'update')
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw error
        this.#lost = lostFile(name)
        throw this.#lost
      }
    })
    await this.#journal?.file.close().catch(() => {})
    this.#journal = { name, file }
    return file
  }

  /** The failure if the journal is not where the next opening would find it. */
  #lostJournal(isSynced: boolean): StorageFailure | undefined {
    const { name, file } = this.#journal!
    const now = performance.now()
    if (!isSynced && now - this.#nameCheckedAt < NAME_CHECK_INTERVAL_MS) return this.#lost
    this.#nameCheckedAt = now
    if (!file.isNamed(name)) this.#lost ??= lostFile(name)
    return this.#lost
  }

  /** Another directory may have taken the place: nothing is written there. */
  #assertDirectory(): void {
    if (this.#lost !== undefined) throw this.#lost
    if (this.#files.isInPlace()) return
    this.#lost = new StorageFailure('io', 'the directory was removed or moved while it was open', {
      nothingWritten: true,
    })
    throw this.#lost
  }

  /** Undefined without the file. */
  async #sizeOf(name: string): Promise<number | undefined> {
    try {
      return await this.#files.size(name)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    }
  }
}

/** Removes the reserve. Resolves to whether there was one. */
export async function releaseReserve(files: Files): Promise<boolean> {
  try {
    await files.unlink(RESERVE_NAME)
    // Some file systems do not use freed space before it is certain that it is free.
    await files.syncDirectory()
    return true
  } catch {
    return false
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

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

class NewDirectoryFile implements NewFile {
  readonly #files: Files
  readonly #name: string
  readonly #file: File
  readonly #assertDirectory: () => void
  readonly #buffer = Buffer.allocUnsafeSlow(WRITE_BYTES)
  #pending = 0
  #written = 0
  #isClosed = false

  constructor(files: Files, name: string, file: File, assertDirectory: () => void) {
    this.#files = files
    this.#name = name
    this.#file = file
    this.#assertDirectory = assertDirectory
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#pending + bytes.length > WRITE_BYTES) await failing(() => this.#flush())
    if (bytes.length > WRITE_BYTES) return failing(() => this.#writeNow(bytes))
    this.#buffer.set(bytes, this.#pending)
    this.#pending += bytes.length
  }

  async #flush(): Promise<void> {
    await this.#writeNow(this.#buffer.subarray(0, this.#pending))
    this.#pending = 0
  }

  async #writeNow(bytes: Uint8Array): Promise<void> {
    await this.#file.write(bytes, this.#written)
    this.#written += bytes.length
  }

  finish(): Promise<void> {
    return failing(async () => {
      await this.#flush()
      await this.#file.datasync()
      await this.#close()
      this.#assertDirectory()
      await this.#files.rename(this.#name + TEMPORARY, this.#name)
      await this.#files.syncDirectory()
    })
  }

  async abandon(): Promise<void> {
    await this.#close().catch(() => {})
    await this.#files.unlink(this.#name + TEMPORARY).catch(() => {})
  }

  /** Closes once, even if that fails: the system reuses the descriptor. */
  async #close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#file.close()
  }
}

interface Reader {
  readonly file: Promise<File>
  users: number
}

/** Files that are open for reading, the least recently used first. */
class OpenFiles {
  readonly #files: Files
  readonly #readers = new Map<string, Reader>()

  constructor(files: Files) {
    this.#files = files
  }

  async use<Result>(name: string, work: (file: File) => Promise<Result>): Promise<Result> {
    const reader = this.#readers.get(name) ?? { file: this.#files.open(name, 'read'), users: 0 }
    this.#readers.delete(name)
    this.#readers.set(name, reader)
    reader.users++
    try {
      return await work(await this.#opened(name, reader))
    } finally {
      reader.users--
      if (this.#readers.get(name) !== reader) await this.#close(reader)
      else if (this.#readers.size > IDLE_FILES_MAX) await this.#closeIdle()
    }
  }

  async #opened(name: string, { file }: Reader): Promise<File> {
    try {
      return await file
    } catch (error) {
      // Too many open files, for example: later readers try again.
      this.#readers.delete(name)
      throw codeOf(error) === 'ENOENT' ? new MissingFile(name) : error
    }
  }

  /** Closes the file once nothing reads it. */
  async forget(name: string): Promise<void> {
    const reader = this.#readers.get(name)
    this.#readers.delete(name)
    if (reader !== undefined) await this.#close(reader)
  }

  async close(): Promise<void> {
    for (const name of [...this.#readers.keys()]) await this.forget(name)
  }

  async #closeIdle(): Promise<void> {
    for (const [name, { users }] of this.#readers) if (users === 0) return this.forget(name)
  }

  async #close({ file, users }: Reader): Promise<void> {
    // The file was only read, so nothing can be lost.
    if (users === 0) await file.then((open) => open.close()).catch(() => {})
  }
}
