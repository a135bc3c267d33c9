import { fileFailure } from './errors.ts'
import type { File, Files } from './files.ts'

/** How many unused files stay open. */
const IDLE_MAX = 64

interface Handle {
  /** Undefined until the first read. */
  file: Promise<File> | undefined
  users: number
  /** Whether to close and remove the file when its last user releases it. */
  isRemoved: boolean
}

/**
 * Keeps files open for reading. A file that is removed while it is read stays until its last reader is done.
 */
export class FileCache {
  readonly #files: Files
  /** Least recently used first. */
  readonly #handles = new Map<string, Handle>()

  constructor(files: Files) {
    this.#files = files
  }

  async use<Result>(name: string, work: (file: File) => Promise<Result>): Promise<Result> {
    const handle = this.#acquire(name)
    try {
      return await work(await this.#fileOf(name, handle))
    } catch (error) {
      throw fileFailure(error, true)
    } finally {
      await this.#release(name, handle)
    }
  }

  /** Keeps files from being removed until the returned function is called. */
  hold(names: Iterable<string>): () => Promise<void> {
    const held = [...names].map((name) => [name, this.#acquire(name)] as const)
    return async () => {
      for (const [name, handle] of held) await this.#release(name, handle)
    }
  }

  /** Removes the file if it exists, at once or when its last reader releases it. */
  async remove(name: string): Promise<void> {
    const handle = this.#handles.get(name)
    if (handle !== undefined) {
      handle.isRemoved = true
      if (handle.users > 0) return
      await this.#end(name, handle)
    }
    try {
      await this.#files.unlink(name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }

  /** Closes all files. There must be no reader left. */
  async close(): Promise<void> {
    for (const [name, handle] of [...this.#handles]) await this.#end(name, handle)
  }

  /**
   * A failed open (too many open files, for example) fails the readers that wait for it, but not later ones.
   */
  #fileOf(name: string, handle: Handle): Promise<File> {
    if (handle.file !== undefined) return handle.file
    const file = this.#files.open(name, 'read')
    handle.file = file
    file.catch(() => {
      handle.file = undefined
    })
    return file
  }

  #acquire(name: string): Handle {
    let handle = this.#handles.get(name)
    if (handle === undefined) handle = { file: undefined, users: 0, isRemoved: false }
    else this.#handles.delete(name)
    this.#handles.set(name, handle)
    handle.users++
    return handle
  }

  async #release(name: string, handle: Handle): Promise<void> {
    handle.users--
    if (handle.users > 0) return
    if (!handle.isRemoved) {
      await this.#closeIdle()
      return
    }
    await this.#end(name, handle)
    // The last reader must not fail because of the removal. A file that stays is removed at the next opening.
    await this.#files.unlink(name).catch(() => {})
  }

  async #closeIdle(): Promise<void> {
    if (this.#handles.size <= IDLE_MAX) return
    for (const [name, handle] of this.#handles) {
      if (handle.users > 0) continue
      await this.#end(name, handle)
      return
    }
  }

  async #end(name: string, handle: Handle): Promise<void> {
    this.#handles.delete(name)
    const file = await handle.file?.catch(() => undefined)
    // The file was only read, so nothing can be lost.
    await file?.close().catch(() => {})
  }
}
