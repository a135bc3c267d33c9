import {
  close,
  constants,
  fdatasync,
  fstat,
  ftruncate,
  link,
  open,
  read,
  readdir,
  rename,
  type Stats,
  unlink,
  write,
} from 'node:fs'
import { join } from 'node:path'
import type { File, Files } from './files.ts'
import type { PinnedDirectory } from './pinned-directory.ts'

type Callback<Result> = (error: NodeJS.ErrnoException | null, result?: Result) => void

/** Reading does not wait for who would write: of a pipe, opening would not come to an end. Regular files do not know it, nor does Windows. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/** The real files of a directory, or of the one at a path. Callbacks, for `node:fs/promises` costs as much again as the calls. */
export function nodeFiles(directory: string | PinnedDirectory): Files {
  function using<Result>(work: (path: string) => Promise<Result>): Promise<Result> {
    return typeof directory === 'string' ? work(directory) : directory.use(work)
  }
  return {
    list: () => using((path) => call((done) => readdir(path, done))),
    open: (name, mode) =>
      using((path) => (mode === 'create' ? create(join(path, name)) : openToRead(join(path, name)))),
    rename: (from, to) => using((path) => call((done) => rename(join(path, from), join(path, to), done))),
    link: (from, to) => using((path) => call((done) => link(join(path, from), join(path, to), done))),
    unlink: (name) => using((path) => call((done) => unlink(join(path, name), done))),
    syncDirectory: () => using(syncDirectory),
  }
}

async function create(path: string): Promise<File> {
  return new NodeFile(await call<number>((done) => open(path, 'w+', done)))
}

async function openToRead(path: string): Promise<File> {
  const descriptor = await call<number>((done) => open(path, READ, done))
  const file = new NodeFile(descriptor)
  try {
    const stats = await call<Stats>((done) => fstat(descriptor, done))
    if (!stats.isFile()) throw irregular(path, stats.isDirectory() ? 'EISDIR' : 'EINVAL')
  } catch (error) {
    await file.close()
    throw error
  }
  return file
}

function irregular(path: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: not a regular file, open '${path}'`), { code, path })
}

/** Windows has no way to sync a directory, and makes its entries durable by itself. */
export async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return
  const descriptor = await call<number>((done) => open(directory, 'r', done))
  try {
    await call<void>((done) => fdatasync(descriptor, done))
  } finally {
    await call<void>((done) => close(descriptor, done))
  }
}

class NodeFile implements File {
  readonly #descriptor: number
  #isClosed = false

  constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  async size(): Promise<number> {
    return (await call<{ size: number }>((done) => fstat(this.#descriptor, done))).size
  }

  async read(buffer: Uint8Array, position: number): Promise<number> {
    let filled = 0
    while (filled < buffer.length) {
      const left = buffer.length - filled
      const count = await call<number>((done) =>
        read(this.#descriptor, buffer, filled, left, position + filled, done),
      )
      if (count === 0) break
      filled += count
    }
    return filled
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      const left = bytes.length - written
      const count = await call<number>((done) =>
        write(this.#descriptor, bytes, written, left, position + written, done),
      )
      if (count === 0) throw Object.assign(new Error('the system writes nothing'), { code: 'EIO' })
      written += count
    }
  }

  truncate(length: number): Promise<void> {
    return call((done) => ftruncate(this.#descriptor, length, done))
  }

  datasync(): Promise<void> {
    return call((done) => fdatasync(this.#descriptor, done))
  }

  /** The second time nothing happens: the number may be that of another file by then. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await call<void>((done) => close(this.#descriptor, done))
  }
}

function call<Result>(begin: (done: Callback<Result>) => void): Promise<Result> {
  return new Promise((resolve, reject) => {
    begin((error, result) => {
      if (error) reject(error)
      else resolve(result as Result)
    })
  })
}
