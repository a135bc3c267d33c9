import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { bytesText, progressBar } from '../../adapters/cli/output.ts'
import { fakeTerminal } from './run.ts'

const MIB = 1_048_576

describe('a progress bar', () => {
  it('has share, amount, rate, time left and a note', () => {
    const { bar, lines, pass } = started()
    bar.update(0, 8 * MIB, 'first')
    expect(lines().at(-1)).toMatch(
      /^Copying {2}\[ {24}\] 0% {2}0 B of 8\.0 MiB {2}0 B\/s {2}ETA \S+ {2}first$/,
    )
    pass(2000)
    bar.update(2 * MIB, 8 * MIB, 'second')
    bar.stop()
    expect(lines().at(-1)).toMatch(
      /^Copying {2}\[={6} {18}\] 25% {2}2\.0 MiB of 8\.0 MiB {2}1\.0 MiB\/s {2}ETA \S+ {2}second$/,
    )
  })

  it('escapes control characters of a note', () => {
    const { bar, lines } = started()
    bar.update(1, 2, '\u001b[2Jxxx')
    bar.stop()
    expect(lines().at(-1)).toContain('\\u{1b}[2Jxxx')
  })

  it('leaves no timer and no output, and restores the cursor', () => {
    const { bar, drawn } = started()
    bar.update(1, 2)
    bar.stop()
    expect(vi.getTimerCount()).toBe(0)
    expect(drawn()).toContain('\u001b[?25h')
    expect(drawn().endsWith('\u001b[2K')).toBe(true)
    const length = drawn().length
    bar.update(2, 2)
    bar.stop()
    expect(drawn().length).toBe(length)
  })
})

it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [MIB - 1, '1.0 MiB'],
  [Number.MAX_SAFE_INTEGER, '8.0 PiB'],
])('%i bytes are %s', (bytes, text) => {
  expect(bytesText(bytes)).toBe(text)
})

function started() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { terminal, drawn } = fakeTerminal()
  let now = 0
  const bar = progressBar({ terminal, now: () => now } as CliContext, 'Copying')
  return {
    bar,
    drawn,
    /** What stood on the terminal, one after the other. */
    lines: () =>
      drawn()
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what moves the cursor separates them
        .split(/\u001b(?:\[[?\d]*[a-zA-Z]|[78])/)
        .filter((line) => line !== ''),
    pass: (ms: number) => {
      now += ms
    },
  }
}
