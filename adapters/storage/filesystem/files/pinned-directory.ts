import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * A directory that stays the one that was opened. If it is renamed or removed, a directory that takes its
 * place is never touched: another process may have it open.
 */
export interface PinnedDirectory {
  /** The path at which it was opened. It leads elsewhere if the directory was replaced. */
  readonly path: string
  /**
   * Runs `work` with a path that leads to the directory. Rejects with an error of code `ESTALE` if the
   * directory is gone.
   */
  use<Result>(work: (path: string) => Promise<Result>): Promise<Result>
  /**
   * Sets the name of a file that is in the directory from now on, and tells it from a replacement; undefined
   * for none.
   */
  mark(name: string | undefined): void
  /** Resolves once all work has settled. A second call does nothing. */
  close(): Promise<void>
}

/**
 * Pins by descriptor on Linux, which needs no check and leaves no race. Elsewhere checks the path before each
 * operation.
 */
export async function pinDirectory(path: string): Promise<PinnedDirectory> {
  return (await pinByDescriptor(path)) ?? pinByPath(path)
}

/** Returns undefined where a descriptor does not lead to its directory. */
async function pinByDescriptor(path: string): Promise<PinnedDirectory | undefined> {
  // Deno's descriptors are numbers of its own.
  if (process.platform !== 'linux' || process.versions.deno !== undefined) return undefined
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  if (await leadsToItself(handle)) return new DescribedDirectory(path, handle)
  await handle.close()
  return undefined
}

/** False without a `/proc`, or with one that this process cannot use. */
async function leadsToItself(handle: FileHandle): Promise<boolean> {
  try {
    const itself = await handle.stat({ bigint: true })
    const found = await stat(pathOf(handle), { bigint: true })
    return found.dev === itself.dev && found.ino === itself.ino
  } catch {
    return false
  }
}

function pathOf(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

class DescribedDirectory implements PinnedDirectory {
  readonly path: string
  readonly #handle: FileHandle
  readonly #working = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined

  constructor(path: string, handle: FileHandle) {
    this.path = path
    this.#handle = handle
  }

  async use<Result>(work: (path: string) => Promise<Result>): Promise<Result> {
    if (this.#closing !== undefined) throw stale(`${this.path} was closed`)
    const path = pathOf(this.#handle)
    const working = work(path)
    this.#working.add(working)
    try {
      return await working
    } catch (error) {
      // A path by descriptor means nothing to a reader of the message.
      if (error instanceof Error) error.message = error.message.replaceAll(path, this.path)
      throw error
    } finally {
      this.#working.delete(working)
    }
  }

  mark(): void {}

  /** Waits for the work: the system reuses the descriptor at once. */
  close(): Promise<void> {
    this.#closing ??= Promise.allSettled(this.#working).then(() => this.#handle.close())
    return this.#closing
  }
}

/** Pins a directory on systems without paths for descriptors. */
export async function pinByPath(path: string): Promise<PinnedDirectory> {
  const { dev, ino } = await stat(path, { bigint: true })
  let mark: string | undefined
  let isLost = false

  /** Inode numbers are reused: a new directory may have the same one, but lacks the mark. */
  async function isThere(): Promise<boolean> {
    const found = await stat(path, { bigint: true })
    if (found.dev !== dev || found.ino !== ino) return false
    if (mark !== undefined) await stat(join(path, mark))
    return true
  }

  return {
    path,
    async use(work) {
      // Permanent: a directory that comes back would lack everything that failed in between.
      if (!(await isThere().catch(ignoreAbsence))) isLost = true
      if (isLost) throw stale(`${path} is not the directory that was opened: it was renamed or replaced`)
      return work(path)
    },
    mark(name) {
      mark = name
    },
    async close() {},
  }
}

/**
 * Other errors, such as too many open files, tell nothing about the directory: they fail this operation only.
 */
function ignoreAbsence(error: NodeJS.ErrnoException): false {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false
  throw error
}

function stale(message: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`ESTALE: ${message}`), { code: 'ESTALE' })
}
