// @module-tag nightly

import { expect, it } from 'vitest'
import { runProgram } from './run-program.ts'

const FIRST_SEED = 41
const SEEDS = 40
const STEPS = 60

/** The runs must contain each of these; otherwise they would prove too little. */
const EXPECTED_EVENTS = [
  'appends',
  'is connected',
  'is disconnected',
  'connections of',
  'opens a tab',
  'is updated',
  'crashes with all of its tabs',
  'crashes',
  'closes',
  'the server crashes',
  'the server starts',
  'the server ignores 1 of',
  'the server ignores 0.3 of',
  'another program appends',
  'the clock of d',
  'the clock of the server',
  'the stream is trimmed',
  'the stream is deleted',
  'the stream is created again',
  'begins its copy again: trimmed',
  'begins its copy again: replaced',
  'discards',
  'retries',
  'begins with a snapshot',
  'records before',
  'is live',
  'is offline',
]

it(`devices keep every promise in ${SEEDS} seeds`, { timeout: 300_000 }, async () => {
  const lines = await runProgram({ seed: FIRST_SEED, seeds: SEEDS, steps: STEPS })
  const failed = lines.findIndex((line) => line.startsWith('Seed '))
  if (failed >= 0) expect.fail(lines.slice(failed).join('\n'))
  expect(lines.filter((line) => line.endsWith('everything works again'))).toHaveLength(SEEDS)
  expect(EXPECTED_EVENTS.filter((event) => !lines.some((line) => line.includes(event)))).toEqual([])
})
