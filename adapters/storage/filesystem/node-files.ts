import { close, fdatasync, fstat, ftruncate, link, open, read, readdir, rename, unlink, write } from 'node:fs'
import { join } from 'node:path'
import type { File, Files } from './files.ts'

type Callback<Result> = (error: NodeJS.ErrnoException | null, result?: Result) => void

/** The real files of a directory. Callbacks, for `node:fs/promises` costs as much again as the calls. */
export function nodeFiles(directory: string): Files {
  const at = (name: string): string => join(directory, name)
  return {
    list: () => call((done) => readdir(directory, done)),
    open: async (name, mode) => {
      const flags = mode === 'create' ? 'w+' : 'r'
      return new NodeFile(await call<number>((done) => open(at(name), flags, done)))
    },
    rename: (from, to) => call((done) => rename(at(from), at(to), done)),
    link: (from, to) => call((done) => link(at(from), at(to), done)),
    unlink: (name) => call((done) => unlink(at(name), done)),
    syncDirectory: () => syncDirectory(directory),
  }
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
