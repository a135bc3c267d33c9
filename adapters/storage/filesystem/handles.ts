import { failureOf } from './failures.ts'
import type { File, Files } from './files.ts'

/** Files that nobody reads are kept open up to this number. */
const IDLE_MAX = 64

interface Handle {
  /** Undefined as long as nobody reads. */
  file: Promise<File> | undefined
  users: number
  /** To be closed and removed when the last user is gone. */
  doomed: boolean
}

/** Open files for reading. A file that is removed while it is read stays until its readers are done. */
export class Handles {
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
      throw failureOf(error, true)
    } finally {
      await this.#release(name, handle)
    }
  }

  /** Holds files so that they outlive a removal until the returned function is called. */
  hold(names: Iterable<string>): () => Promise<void> {
    const held = [...names].map((name) => [name, this.#acquire(name)] as const)
    return async () => {
      for (const [name, handle] of held) await this.#release(name, handle)
    }
  }

  /** Removes the file as soon as nobody reads it. */
  async remove(name: string): Promise<void> {
    const handle = this.#handles.get(name)
    if (handle === undefined) {
      await this.#files.unlink(name)
      return
    }
    handle.doomed = true
    if (handle.users > 0) return
    await this.#end(name, handle)
    await this.#files.unlink(name)
  }

  /** With nobody reading. */
  async close(): Promise<void> {
    for (const [name, handle] of [...this.#handles]) await this.#end(name, handle)
  }

  /** An opening that fails (too many open files) fails those that wait for it, and nobody who comes later. */
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
    if (handle === undefined) handle = { file: undefined, users: 0, doomed: false }
    else this.#handles.delete(name)
    this.#handles.set(name, handle)
    handle.users++
    return handle
  }

  async #release(name: string, handle: Handle): Promise<void> {
    handle.users--
    if (handle.users > 0) return
    if (!handle.doomed) {
      await this.#closeIdle()
      return
    }
    await this.#end(name, handle)
    // The reader that happens to be the last has nothing to do with it; what stays is removed at the next opening.
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
    // It was only read, so nothing can be lost.
    await file?.close().catch(() => {})
  }
}
