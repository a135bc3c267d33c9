import { close as closeFile, fstat, open as openFile, read as readFile } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'

/** Bytes that a command reads into its own buffer, so that a long input costs no allocations. */
export interface ByteSource {
  /** The size in bytes; undefined if it is not known. */
  readonly size: number | undefined
  /**
   * Reads what is there, up to the length of `into`, and waits if nothing is. Resolves to the number of
   * bytes, 0 at the end and after `close`. Must not be called again before it has settled.
   */
  read(into: Uint8Array): number | Promise<number>
  /** Ends a `read` that waits. */
  close(): void
}

const stats = promisify(fstat)
const open = promisify(openFile)
const read = promisify(readFile)

/** Opens a file, a named pipe or a device. */
export async function fileSource(path: string): Promise<ByteSource> {
  const fd = await open(path, 'r')
  return (await descriptorSource(fd)) ?? new FileSource(fd, undefined)
}

/** Reads from a descriptor. Undefined for one that is neither a file nor a pipe nor a socket. */
export async function descriptorSource(fd: number): Promise<ByteSource | undefined> {
  const about = await stats(fd)
  if (about.isFile()) return new FileSource(fd, about.size)
  return about.isFIFO() || about.isSocket() ? new PipeSource(fd) : undefined
}

class FileSource implements ByteSource {
  readonly size: number | undefined
  readonly #fd: number
  #isClosed = false

  constructor(fd: number, size: number | undefined) {
    this.#fd = fd
    this.size = size
  }

  async read(into: Uint8Array): Promise<number> {
    if (this.#isClosed) return 0
    const { bytesRead } = await read(this.#fd, into, 0, into.length, null)
    return this.#isClosed ? 0 : bytesRead
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    // The descriptor is closed after a read that is under way.
    closeFile(this.#fd, () => {})
  }
}

/** The capacity of a pipe on most systems, in bytes. */
const PIPE_BYTES = 65_536

/**
 * Reads from a pipe without blocking a thread: a pending `fs.read` would keep the process from ending. All
 * data passes through one buffer, where `process.stdin` allocates one for each chunk.
 */
class PipeSource implements ByteSource {
  readonly size = undefined
  readonly #socket: Socket
  readonly #buffer = new Uint8Array(PIPE_BYTES)
  /** The part of the buffer that waits to be read. */
  #start = 0
  #end = 0
  #isEnded = false
  #failure: { readonly error: Error } | undefined
  #reader:
    | { readonly into: Uint8Array; resolve(length: number): void; reject(error: Error): void }
    | undefined

  constructor(fd: number) {
    const callback = (length: number) => this.#received(length)
    const options = { fd, readable: true, writable: false, onread: { buffer: this.#buffer, callback } }
    this.#socket = new Socket(options)
    this.#socket.on('error', (error) => {
      this.#failure = { error }
      this.#settle()
    })
    for (const event of ['end', 'close']) {
      this.#socket.on(event, () => {
        this.#isEnded = true
        this.#settle()
      })
    }
  }

  read(into: Uint8Array): number | Promise<number> {
    if (this.#start < this.#end) return this.#take(into)
    return new Promise((resolve, reject) => {
      this.#reader = { into, resolve, reject }
      this.#settle()
      if (this.#reader !== undefined) this.#socket.resume()
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  /** Returns whether the buffer can be used again. */
  #received(length: number): boolean {
    this.#start = 0
    this.#end = length
    this.#settle()
    return this.#start === this.#end
  }

  #take(into: Uint8Array): number {
    const part = this.#buffer.subarray(this.#start, Math.min(this.#end, this.#start + into.length))
    into.set(part)
    this.#start += part.length
    return part.length
  }

  #settle(): void {
    const reader = this.#reader
    if (reader === undefined) return
    if (this.#start < this.#end) {
      this.#reader = undefined
      reader.resolve(this.#take(reader.into))
    } else if (this.#failure !== undefined) {
      this.#reader = undefined
      reader.reject(this.#failure.error)
    } else if (this.#isEnded) {
      this.#reader = undefined
      reader.resolve(0)
    }
  }
}

/** Reads from a stream of Node, such as a terminal. */
export function streamSource(stream: Readable): ByteSource {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  let rest: Uint8Array = new Uint8Array(0)
  let isClosed = false
  return {
    size: undefined,
    async read(into) {
      try {
        if (rest.length === 0) {
          const { done, value } = await chunks.next()
          if (done) return 0
          rest = value
        }
      } catch (error) {
        // A stream that was destroyed rejects.
        if (isClosed) return 0
        throw error
      }
      const part = rest.subarray(0, into.length)
      into.set(part)
      rest = rest.subarray(part.length)
      return part.length
    },
    close() {
      isClosed = true
      stream.destroy()
    },
  }
}
