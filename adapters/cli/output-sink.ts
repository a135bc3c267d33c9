import { fstatSync, fsync, type Stats, write } from 'node:fs'
import { promisify } from 'node:util'
import { type ByteSink, TransferError } from '../transfer/index.ts'

/** Standard output, as what it is: Node writes to files without looking how much of it was taken. */
export function outputSink(stream: NodeJS.WritableStream): ByteSink {
  const { fd, isTTY } = stream as NodeJS.WritableStream & { readonly fd?: number; readonly isTTY?: boolean }
  const stats = fd === undefined || isTTY ? undefined : fstatSync(fd)
  if (fd === undefined || stats === undefined || stats.isFIFO() || stats.isSocket())
    return new StreamSink(stream)
  return new DescriptorSink(fd, stats)
}

/** Waits until what was written has been taken. */
class StreamSink implements ByteSink {
  readonly #stream: NodeJS.WritableStream

  constructor(stream: NodeJS.WritableStream) {
    this.#stream = stream
    // The failure of a write is told to who wrote.
    stream.on('error', ignore)
  }

  write(bytes: Uint8Array): Promise<void> {
    return usable(
      new Promise((resolve, reject) => {
        this.#stream.write(bytes, (error) => (error ? reject(error) : resolve()))
      }),
    )
  }

  async close(): Promise<void> {
    this.#stream.off('error', ignore)
  }
}

const writeSome = promisify(write)
const sync = promisify(fsync)

/** A file, or a device that is no terminal: written to where it stands, so that `>>` appends. It stays open. */
class DescriptorSink implements ByteSink {
  readonly #fd: number
  readonly #isFile: boolean

  constructor(fd: number, stats: Stats) {
    this.#fd = fd
    this.#isFile = stats.isFile()
  }

  async write(bytes: Uint8Array): Promise<void> {
    let written = 0
    while (written < bytes.length) {
      const writing = writeSome(this.#fd, bytes, written, bytes.length - written, null)
      written += (await usable(writing)).bytesWritten
    }
  }

  async close(): Promise<void> {
    if (this.#isFile) await usable(sync(this.#fd))
  }
}

/** Whether nobody reads any more what was to be written, as with `| head`. */
export function isBrokenPipe(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'EPIPE'
}

async function usable<Value>(call: Promise<Value>): Promise<Value> {
  try {
    return await call
  } catch (cause) {
    if (isBrokenPipe(cause)) throw cause
    throw new TransferError(`cannot write to standard output: ${(cause as Error).message}`, { cause })
  }
}

function ignore(): void {}
