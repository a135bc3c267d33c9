import { constants } from 'node:fs'
import { access, type FileHandle, open, stat } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * A directory that stays the one that was opened: when it is renamed, or removed, what takes its place is never touched. Without that, its owner would
 * write into a directory that somebody else has opened since.
 */
export interface PinnedDirectory {
  /** Where it was when it was opened: for messages. */
  readonly path: string
  /** Runs work with a path that leads to it. Rejects with an error of code `ESTALE` when there is none any more. */
  use<Result>(work: (path: string) => Promise<Result>): Promise<Result>
  /** The file with this name is in it from now on, by which it is told from another one in its place; none is with undefined. */
  mark(name: string | undefined): void
  /** Resolves when all work has come to its end. The second time nothing happens. */
  close(): Promise<void>
}

/** On Linux by its descriptor, which needs no check and leaves no moment between the check and the work; elsewhere by looking before each work. */
export async function pinDirectory(path: string): Promise<PinnedDirectory> {
  return (await pinByDescriptor(path)) ?? pinByPath(path)
}

/** Undefined where a descriptor does not lead to its directory. */
async function pinByDescriptor(path: string): Promise<PinnedDirectory | undefined> {
  // The descriptors that Deno gives out are numbers of its own.
  if (process.platform !== 'linux' || process.versions.deno !== undefined) return undefined
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  if (await leadsToItself(handle)) return new DescribedDirectory(path, handle)
  await handle.close()
  return undefined
}

/** Not without `/proc`, and with none that this process may not use. */
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
      // A descriptor says nothing to who reads the message.
      if (error instanceof Error) error.message = error.message.replaceAll(path, this.path)
      throw error
    } finally {
      this.#working.delete(working)
    }
  }

  mark(): void {}

  /** Not while there is work: the system gives the number to somebody else at once. */
  close(): Promise<void> {
    this.#closing ??= Promise.allSettled(this.#working).then(() => this.#handle.close())
    return this.#closing
  }
}

/** For systems on which descriptors have no paths. */
export async function pinByPath(path: string): Promise<PinnedDirectory> {
  const { dev, ino } = await stat(path, { bigint: true })
  let mark: string | undefined
  let isLost = false

  /** Numbers of files are given out again: a directory made anew may have the same one, but not the mark. */
  async function isThere(): Promise<boolean> {
    const found = await stat(path, { bigint: true })
    if (found.dev !== dev || found.ino !== ino) return false
    if (mark !== undefined) await access(join(path, mark))
    return true
  }

  return {
    path,
    async use(work) {
      // Once and for all: what failed since would be missing in the directory when it comes back.
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

/** Too many open files, or the like, say nothing: that fails the work, which may be tried again. */
function ignoreAbsence(error: NodeJS.ErrnoException): false {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false
  throw error
}

function stale(message: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`ESTALE: ${message}`), { code: 'ESTALE' })
}
