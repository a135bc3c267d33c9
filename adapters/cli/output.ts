import { createWriteStream, fstatSync } from 'node:fs'
import { SingleBar } from 'cli-progress'
import type { CliContext } from './context.ts'
import { CliError, isBrokenPipe, printable } from './errors.ts'

/**
 * Returns a function that writes to standard output and waits for it. It rejects with `EPIPE` when the reader
 * of a pipe is gone.
 */
export function standardOutput(
  output: ReturnType<CliContext['output']>,
): (bytes: Uint8Array) => Promise<void> {
  const stats = output.fd === undefined || output.isTTY ? undefined : fstatSync(output.fd)
  const isStream = stats === undefined || stats.isFIFO() || stats.isSocket()
  // For a file, the standard output of Node ignores what a full disk did not take.
  const stream: NodeJS.WritableStream = isStream
    ? output
    : createWriteStream('', { fd: output.fd, autoClose: false })
  // A failed write rejects its own promise; without a listener the event would end the process.
  stream.on('error', () => {})
  return async (bytes) => {
    const error = await new Promise<Error | null | undefined>((done) => void stream.write(bytes, done))
    if (isBrokenPipe(error)) throw error
    if (error) throw new CliError(1, `cannot write to standard output: ${error.message}`)
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
