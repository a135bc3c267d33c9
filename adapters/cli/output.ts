import { fstatSync, fsync, type Stats, write } from 'node:fs'
import { promisify } from 'node:util'
import { SingleBar } from 'cli-progress'
import type { ByteSink } from '../transfer/index.ts'
import { TransferError } from '../transfer/transfer-error.ts'
import type { CliContext } from './context.ts'
import { isBrokenPipe, printable } from './errors.ts'

/**
 * Returns standard output as a sink that waits for each write. A write rejects with `EPIPE` when the reader
 * of a pipe is gone. Files and devices are written through their descriptor: a Node stream ignores partial
 * writes to a full disk. `close` syncs a file.
 */
export function standardOutput(stream: ReturnType<CliContext['output']>): ByteSink {
  const stats = stream.fd === undefined || stream.isTTY ? undefined : fstatSync(stream.fd)
  const isStream = stats === undefined || stats.isFIFO() || stats.isSocket()
  return isStream ? streamSink(stream) : descriptorSink(stream.fd!, stats)
}

/** Writes to a pipe, a socket or a terminal. */
function streamSink(stream: NodeJS.WritableStream): ByteSink {
  // A failed write rejects its own promise; without a listener the event would end the process.
  const ignore = () => {}
  stream.on('error', ignore)
  return {
    write: (bytes) =>
      explained(
        new Promise((resolve, reject) => {
          stream.write(bytes, (error) => (error ? reject(error) : resolve()))
        }),
      ),
    close: async () => void stream.off('error', ignore),
  }
}

const writeSome = promisify(write)
const sync = promisify(fsync)

/** Writes to a file or a device at its current position, so that `>>` appends. Leaves the descriptor open. */
function descriptorSink(fd: number, stats: Stats): ByteSink {
  return {
    async write(bytes) {
      for (let written = 0; written < bytes.length; ) {
        const writing = writeSome(fd, bytes, written, bytes.length - written, null)
        written += (await explained(writing)).bytesWritten
      }
    },
    async close() {
      if (stats.isFile()) await explained(sync(fd))
    },
  }
}

async function explained<Value>(call: Promise<Value>): Promise<Value> {
  try {
    return await call
  } catch (cause) {
    if (isBrokenPipe(cause)) throw cause
    throw new TransferError(`cannot write to standard output: ${(cause as Error).message}`, { cause })
  }
}

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

/** Prints rows in columns that are two spaces apart. Untrusted text in the cells is escaped. */
export function printTable(rows: readonly (readonly string[])[], { print }: Pick<CliContext, 'print'>): void {
  const cells = rows.map((row) => row.map(printable))
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  for (const row of cells) {
    const columns = row.map((cell, column) => cell.padEnd(widths[column]!))
    print(columns.join('  ').trimEnd())
  }
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

export interface ProgressBar {
  /**
   * Reports progress. It may be called often: the bar is drawn at most ten times a second.
   *
   * @param done In bytes.
   * @param total In bytes, the same at each call. If it is undefined, only the amount and the rate are shown.
   * @param note What is being processed, for example a file name.
   */
  update(done: number, total: number | undefined, note?: string): void
  /** Removes the bar. Required in every case: the bar keeps the process alive. */
  stop(): void
}

/**
 * Creates a progress bar on standard error, with rate and remaining time. Draws nothing without a terminal,
 * and if it is hidden.
 */
export function progressBar(
  { terminal, now }: Pick<CliContext, 'terminal' | 'now'>,
  title: string,
  isHidden = false,
): ProgressBar {
  if (terminal === undefined || isHidden) return { update() {}, stop() {} }
  const startedAt = now()
  let bar: SingleBar | undefined
  return {
    update(done, total, note = '') {
      const seconds = (now() - startedAt) / 1000
      const rate = `${bytesText(seconds > 0 ? done / seconds : 0)}/s`
      const size = total === undefined ? '' : ` of ${bytesText(total)}`
      const values = { amount: `${bytesText(done)}${size}`, rate, note: printable(note) }
      if (bar !== undefined) return bar.update(done, values)
      const [share, end] =
        total === undefined ? ['', ''] : ['[{bar}] {percentage}%  ', 'ETA {eta_formatted}  ']
      bar = new SingleBar({
        format: `${title}  ${share}{amount}  {rate}  ${end}{note}`,
        barsize: 24,
        barCompleteChar: '=',
        barIncompleteChar: ' ',
        stream: terminal,
        hideCursor: true,
        clearOnComplete: true,
      })
      bar.start(total ?? 0, done, values)
    },
    stop: () => bar?.stop(),
  }
}

/** Formats a number of bytes: `512 B`, `1.5 MiB`. */
export function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  // Not 1,024: a value that would be rounded up to it belongs to the next unit.
  while (value >= 1023.95 && unit < BYTE_UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[unit]}`
}
