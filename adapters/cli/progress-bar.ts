import cliProgress, { type Params } from 'cli-progress'
import { bytesText } from './bytes-text.ts'
import type { CliContext } from './cli-context.ts'
import { printable } from './printable.ts'

const BAR_CHARACTERS = 24

export interface ProgressBar {
  /**
   * Tells how far the work has come, as often as one likes: it is drawn ten times a second at the most.
   *
   * @param done Bytes.
   * @param total Bytes; undefined as long as it is unknown, and then there is no bar, only how much and how fast.
   * @param note What is being worked on, for instance the name of a file.
   */
  update(done: number, total: number | undefined, note?: string): void
  /** Takes the bar off the terminal. To be called however the work ended: the bar keeps the process alive. */
  stop(): void
}

/** A bar on standard error with rate and time left. Draws nothing where that is no terminal. */
export function progressBar({ terminal, now }: CliContext, title: string): ProgressBar {
  if (terminal === undefined) return { update() {}, stop() {} }
  const startedAt = now()
  let total: number | undefined
  let note = ''
  const format = (_: unknown, { value }: Params): string => {
    const line = [title, ...amounts(value, total, (now() - startedAt) / 1000), note].join('  ')
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
    update(done, of, about = '') {
      total = of
      note = printable(about)
      if (isStarted) bar.update(done)
      else bar.start(0, done)
      isStarted = true
    },
    stop: () => bar.stop(),
  }
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

/** `02:05`, `1:02:05`. */
function durationText(duration: number): string {
  const seconds = Math.ceil(duration)
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  const rest = `${two((seconds / 60) % 60)}:${two(seconds % 60)}`
  return seconds < 3600 ? rest : `${Math.floor(seconds / 3600)}:${rest}`
}
