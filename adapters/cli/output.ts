import { fstatSync, fsync, type Stats, write } from 'node:fs'
import { promisify } from 'node:util'
import type { ByteSink } from '../transfer/index.ts'
import { TransferError } from '../transfer/transfer-error.ts'
import { isBrokenPipe, printable } from './errors.ts'

/**
 * Returns standard output as a sink that waits for each write. A write rejects with `EPIPE` when the reader
 * of a pipe is gone. Files and devices are written through their descriptor: a Node stream ignores partial
 * writes to a full disk. `close` syncs a file.
 */
export function standardOutput(stream: NodeJS.WritableStream): ByteSink {
  const { fd, isTTY } = stream as NodeJS.WritableStream & {
    readonly fd?: number | undefined
    readonly isTTY?: boolean | undefined
  }
  const stats = fd === undefined || isTTY ? undefined : fstatSync(fd)
  if (fd === undefined || stats === undefined || stats.isFIFO() || stats.isSocket()) {
    return new StreamSink(stream)
  }
  return new DescriptorSink(fd, stats)
}

/** Writes to a pipe, a socket or a terminal, and waits for each write. */
class StreamSink implements ByteSink {
  readonly #stream: NodeJS.WritableStream

  constructor(stream: NodeJS.WritableStream) {
    this.#stream = stream
    // A failed write rejects its own promise; without a listener the event would end the process.
    stream.on('error', ignore)
  }

  write(bytes: Uint8Array): Promise<void> {
    return withContext(
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

/** Writes to a file or a device at its current position, so that `>>` appends. Leaves the descriptor open. */
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
      written += (await withContext(writing)).bytesWritten
    }
  }

  async close(): Promise<void> {
    if (this.#isFile) await withContext(sync(this.#fd))
  }
}

async function withContext<Value>(call: Promise<Value>): Promise<Value> {
  try {
    return await call
  } catch (cause) {
    if (isBrokenPipe(cause)) throw cause
    throw new TransferError(`cannot write to standard output: ${(cause as Error).message}`, { cause })
  }
}

function ignore(): void {}

/**
 * Returns a function that writes lines to standard output. Ignores that the reader of a pipe is gone: it must
 * not end a server. Calls `onFailure` with the first other error, such as of a full disk.
 */
export function linePrinter(
  stream: NodeJS.WritableStream,
  onFailure: (error: Error) => void,
): (line: string) => void {
  let hasFailed = false
  const fail = (error: Error) => {
    if (hasFailed || isBrokenPipe(error)) return
    hasFailed = true
    onFailure(error)
  }
  stream.on('error', fail)
  return (line) => {
    // Unlike `console.log`, this reports errors. A file throws them in some versions of Node.
    try {
      stream.write(`${line}\n`)
    } catch (error) {
      fail(error as Error)
    }
  }
}

/** Formats rows in columns that are two spaces apart. Untrusted text in the cells is escaped. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const cells = rows.map((row) => row.map(printable))
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}
