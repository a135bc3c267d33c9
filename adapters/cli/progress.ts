import cliProgress, { type Params } from 'cli-progress'
import type { CliContext } from './context.ts'
import { printable } from './errors.ts'

const BAR_CHARACTERS = 24
const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

export interface ProgressBar {
  /**
   * Reports progress. It may be called often: the bar is drawn at most ten times a second.
   *
   * @param done In bytes.
   * @param total In bytes. While it is undefined, only the amount and the rate are shown.
   * @param note What is being processed, for example a file name; a function if making it takes time.
   */
  update(done: number, total: number | undefined, note?: string | (() => string)): void
  /** Removes the bar. Required in every case: the bar keeps the process alive. */
  stop(): void
}

/**
 * Creates a progress bar on standard error, with rate and remaining time. Draws nothing without a terminal.
 */
export function progressBar({ terminal, now }: CliContext, title: string): ProgressBar {
  if (terminal === undefined) return { update() {}, stop() {} }
  const startedAt = now()
  let total: number | undefined
  let note: string | (() => string) = ''
  const format = (_: unknown, { value }: Params): string => {
    const text = printable(typeof note === 'string' ? note : note())
    const line = [title, ...amounts(value, total, (now() - startedAt) / 1000), text].join('  ')
    return line.slice(0, (terminal.columns ?? 80) - 1).trimEnd()
  }
  const bar = new cliProgress.SingleBar({
    format,
    stream: terminal,
    hideCursor: true,
    clearOnComplete: true,
  })
  let isStarted = false
  return {
    update(done, newTotal, newNote = '') {
      total = newTotal
      note = newNote
      if (isStarted) bar.update(done)
      else bar.start(0, done)
      isStarted = true
    },
    stop: () => bar.stop(),
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

/** Formats a count with its noun: `1 stream`, `12,345 records`. */
export function countText(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}

function amounts(done: number, total: number | undefined, seconds: number): string[] {
  const rate = seconds > 0 ? done / seconds : 0
  const speed = `${bytesText(rate)}/s`
  if (total === undefined) return [bytesText(done), speed]
  const share = total === 0 ? 1 : Math.min(done / total, 1)
  const full = Math.round(share * BAR_CHARACTERS)
  return [
    `[${'='.repeat(full)}${' '.repeat(BAR_CHARACTERS - full)}]`,
    `${String(Math.floor(share * 100)).padStart(3)}%`,
    `${bytesText(done)} of ${bytesText(total)}`,
    speed,
    rate === 0 ? 'ETA --:--' : `ETA ${durationText(Math.max(0, total - done) / rate)}`,
  ]
}

/** Formats seconds: `02:05`, `1:02:05`. */
function durationText(duration: number): string {
  const seconds = Math.ceil(duration)
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  const rest = `${two((seconds / 60) % 60)}:${two(seconds % 60)}`
  return seconds < 3600 ? rest : `${Math.floor(seconds / 3600)}:${rest}`
}
