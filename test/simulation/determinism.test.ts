import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Program, programOf } from '../fuzz/harness/program.ts'
import { run } from './simulation.ts'

const STEPS = 300
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

let program: Program
beforeAll(async () => {
  program = await programOf(new URL('main.ts', import.meta.url))
})
afterAll(() => program.remove())

it.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'seed %d has one history, in this process and in another',
  { timeout: 120_000 },
  async (seed) => {
    const { lines, digest } = await run({ seed, steps: STEPS })
    const again = await run({ seed, steps: STEPS })
    expect({ lines: again.lines, digest: again.digest }).toEqual({ lines, digest })
    const args = [program.path, '--seed', `${seed}`, '--steps', `${STEPS}`, '--history']
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: OUTPUT_BYTES_MAX })
    expect(stdout.trimEnd().split('\n')).toEqual(lines)
  },
)

it('other seeds have other histories', async () => {
  const digests = await Promise.all([1, 2, 3].map(async (seed) => (await run({ seed, steps: 50 })).digest))
  expect(new Set(digests).size).toBe(3)
})

it('fewer steps are the beginning of more', async () => {
  const [few, more] = [await run({ seed: 9, steps: 100 }), await run({ seed: 9, steps: 300 })]
  const ofSteps = (lines: readonly string[]) => lines.filter((line) => JSON.parse(line).step < 100)
  expect(ofSteps(few.lines)).toEqual(ofSteps(more.lines))
})
