import {
  close,
  constants,
  fdatasync,
  fstat,
  fstatSync,
  ftruncate,
  open,
  read,
  readdir,
  readSync,
  rename,
  type Stats,
  stat,
  statSync,
  unlink,
  write,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { File, Files } from './files.ts'

type Callback<Result> = (error: NodeJS.ErrnoException | null, result?: Result) => void

/**
 * Opening a pipe without `O_NONBLOCK` would wait for a writer. Regular files ignore the flag; Windows lacks
 * it.
 */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

const UPDATE = constants.O_RDWR | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0)

const CREATE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)

/** The real files of a directory. Uses callbacks because `node:fs/promises` doubles the cost of a call. */
export function nodeFiles(directory: string): Files {
  const first = identityOf(directory)
  const pathOf = (name: string): string => join(directory, name)
  return {
    list: () => call((done) => readdir(directory, done)),
    async size(name) {
      const stats = await call<Stats>((done) => stat(pathOf(name), done))
      if (!stats.isFile()) throw irregular(pathOf(name), stats.isDirectory() ? 'EISDIR' : 'EINVAL')
      return stats.size
    },
    open: (name, mode) =>
      mode === 'create'
        ? create(pathOf(name), pathOf)
        : openExisting(pathOf(name), mode === 'read' ? READ : UPDATE, pathOf),
    rename: (from, to) => call((done) => rename(pathOf(from), pathOf(to), done)),
    unlink: (name) => call((done) => unlink(pathOf(name), done)),
    syncDirectory: () => syncDirectory(directory),
    isInPlace: () => first !== undefined && identityOf(directory) === first,
  }
}

function identityOf(directory: string): string | undefined {
  const stats = statSync(directory, { throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

type PathOf = (name: string) => string

/** Never opens an existing file of the name: it may be a symbolic link, or a link to a foreign file. */
async function create(path: string, pathOf: PathOf): Promise<File> {
  const make = () => call<number>((done) => open(path, CREATE, 0o600, done))
  try {
    return new NodeFile(await make(), pathOf)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  await call<void>((done) => unlink(path, done))
  return new NodeFile(await make(), pathOf)
}

async function openExisting(path: string, flags: number, pathOf: PathOf): Promise<File> {
  const descriptor = await call<number>((done) => open(path, flags, done))
  const file = new NodeFile(descriptor, pathOf)
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
  return Object.assign(new Error(`${code}: not a regular file, '${path}'`), { code, path })
}

/** Windows cannot sync a directory, and makes its entries durable without a sync. */
export async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return
  const descriptor = await call<number>((done) => open(directory, 'r', done))
  try {
    await call<void>((done) => fdatasync(descriptor, done))
  } finally {
    await call<void>((done) => close(descriptor, done))
  }
}

/** A call on memory takes a few microseconds, one that waits for an SSD about a hundred. In milliseconds. */
const SLOW_MS = 0.25
/** How many calls are asynchronous after a slow one. */
const SKIPPED = 256

/**
 * Makes short reads or writes synchronously. When the operating system has the file in memory, as usual, that
 * takes a fifth of the time of a call in another thread. After a call that waited for the disk, the next ones
 * are asynchronous, so that a slow disk hardly delays the event loop.
 */
class ShortCalls {
  /** How many of the next calls are asynchronous. */
  #left = 0

  /** Returns the number of bytes of a synchronous call; 0, without calling, if it should be asynchronous. */
  attempt(call: () => number): number {
    if (this.#left > 0) {
      this.#left--
      return 0
    }
    const start = performance.now()
    const count = call()
    if (performance.now() - start > SLOW_MS) this.#left = SKIPPED
    return count
  }
}

/** Reads and writes of up to this length may be synchronous. */
const SHORT_READ_BYTES = 36 * 1024
const SHORT_WRITE_BYTES = 64 * 1024
/** Systems read less than 2 GiB at once. */
const READ_BYTES_MAX = 1_073_741_824

const shortReads = new ShortCalls()
const shortWrites = new ShortCalls()

class NodeFile implements File {
  readonly #descriptor: number
  readonly #pathOf: PathOf
  #isClosed = false

  constructor(descriptor: number, pathOf: PathOf) {
    this.#descriptor = descriptor
    this.#pathOf = pathOf
  }

  read(buffer: Uint8Array, position: number): number | Promise<number> {
    let filled = 0
    try {
      if (buffer.length <= SHORT_READ_BYTES) {
        filled = shortReads.attempt(() => readSync(this.#descriptor, buffer, 0, buffer.length, position))
      }
    } catch (error) {
      return Promise.reject(error)
    }
    return filled === buffer.length ? filled : this.#readRest(buffer, position, filled)
  }

  async #readRest(buffer: Uint8Array, position: number, start: number): Promise<number> {
    let filled = start
    while (filled < buffer.length) {
      const left = Math.min(buffer.length - filled, READ_BYTES_MAX)
      const count = await call<number>((done) =>
        read(this.#descriptor, buffer, filled, left, position + filled, done),
      )
      if (count === 0) break
      filled += count
    }
    return filled
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    let written =
      bytes.length <= SHORT_WRITE_BYTES
        ? shortWrites.attempt(() => writeSync(this.#descriptor, bytes, 0, bytes.length, position))
        : 0
    while (written < bytes.length) {
      const left = bytes.length - written
      const count = await call<number>((done) =>
        write(this.#descriptor, bytes, written, left, position + written, done),
      )
      if (count === 0) throw Object.assign(new Error('write returned 0 bytes'), { code: 'EIO' })
      written += count
    }
  }

  truncate(length: number): Promise<void> {
    return call((done) => ftruncate(this.#descriptor, length, done))
  }

  isNamed(name: string): boolean {
    const named = statSync(this.#pathOf(name), { throwIfNoEntry: false })
    const own = fstatSync(this.#descriptor)
    return named?.ino === own.ino && named.dev === own.dev
  }

  datasync(): Promise<void> {
    return call((done) => fdatasync(this.#descriptor, done))
  }

  /** A second call does nothing: the descriptor may belong to another file by then. */
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
