import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { bundleProgram } from '../../support/child-process.ts'
import { byRun } from '../../support/run-size.ts'
import { run } from './simulation.ts'

const STEPS = 300
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

const program = bundleProgram(new URL('./program.ts', import.meta.url))

it.each(byRun({ quick: [1, 2], full: [1, 2, 3, 4, 5, 6, 7, 8] }))(
  'seed %d has the same history in this process and another',
  { timeout: 120_000 },
  async (seed) => {
    const { lines, digest } = await run({ seed, steps: STEPS })
    const repeated = await run({ seed, steps: STEPS })
    expect({ lines: repeated.lines, digest: repeated.digest }).toEqual({ lines, digest })
    const CAMPAIGN = JSON.stringify({ name: 'sim', options: { seed, steps: STEPS, history: true } })
    const { stdout } = await promisify(execFile)(process.execPath, [await program], {
      env: { ...process.env, CAMPAIGN },
      maxBuffer: OUTPUT_BYTES_MAX,
    })
    expect(stdout.trimEnd().split('\n')).toEqual(lines)
  },
)

it('different seeds have different histories', async () => {
  const digests = await Promise.all([1, 2, 3].map(async (seed) => (await run({ seed, steps: 50 })).digest))
  expect(new Set(digests).size).toBe(3)
})

it('a run with fewer steps is a prefix of a longer run', async () => {
  const [few, more] = [await run({ seed: 9, steps: 100 }), await run({ seed: 9, steps: 300 })]
  const ofSteps = (lines: readonly string[]) => lines.filter((line) => JSON.parse(line).step < 100)
  expect(ofSteps(few.lines)).toEqual(ofSteps(more.lines))
})
