import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDirectory } from '../../../adapters/storage/filesystem/open-directory.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { Prng } from '../../../src/storage/conformance/prng.ts'
import { KilledWriters } from './check-killed.ts'
import { Child, childProgram } from './child-process.ts'
import { LARGE_BLOCK_BYTES, ROLL_BYTES } from './children/blocks.ts'
import { temporaryDirectory } from './directories.ts'

const ROUNDS = Number(process.env.KILL_ROUNDS ?? '36')

/** When: at a random acknowledgement, or before an operation on files that matches, after so many others of them at the most. */
const MOMENTS: readonly (readonly [what: string, operations: string, below: number])[] = [
  ['while it writes', '', 0],
  ['while it opens the directory', '.', 20],
  ['while it writes a group', '^(write|datasync) journal', 30],
  ['while it begins a journal', 'journal-\\d+(\\.tmp)?( create|)$', 8],
  ['while it rolls', '^(open|write|datasync|rename|link) (segment|checkpoint)', 30],
  ['while it removes files', '^unlink', 12],
]

test(`${ROUNDS} processes that are killed leave all that they acknowledged, and the next goes on`, async () => {
  const prng = new Prng(1)
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await childProgram('writer', base)
  const writers = new KilledWriters()
  const start = (round: number): Child => {
    const [, operations, below] = MOMENTS[round % MOMENTS.length]!
    const durability = prng.pick(['sync', 'os'])
    return new Child(program, [directory, `${round}`, durability, operations, `${prng.below(below)}`])
  }
  const met = new Map(MOMENTS.map(([what]) => [what, 0]))
  let adopted = 0
  let next = start(0)
  for (let round = 0; round < ROUNDS; round++) {
    const child = next
    const [what] = MOMENTS[round % MOMENTS.length]!
    // Starts while this one works.
    next = start(round + 1)
    child.send('go')
    await child.told(what === 'while it writes' ? 1 + prng.below(400) : 2_000)
    if (child.hasEnded || what === 'while it writes') met.set(what, met.get(what)! + 1)
    await child.kill()
    adopted += await adoptedIn(directory)
    // Sometimes the next writer is the first that finds what it left.
    if (prng.chance(0.2)) {
      writers.note(child.lines)
      continue
    }
    const options = { rollBytes: ROLL_BYTES, largeBlockBytes: LARGE_BLOCK_BYTES }
    const session = await openDirectory(directory, { durability: 'sync', ...options }, systemClock)
    await writers.check(session, child.lines).catch((error: Error) => {
      throw new Error(`round ${round}, killed ${what}: ${error.message}`, { cause: error })
    })
    await session.close()
  }
  await next.kill()
  for (const [what, count] of met) expect(count, what).toBeGreaterThan(ROUNDS / MOMENTS.length / 2)
  expect(adopted, 'adopted journals').toBeGreaterThan(0)
}, 600_000)

/** Segments that begin as journals do. */
async function adoptedIn(directory: string): Promise<number> {
  const segments = (await readdir(directory)).filter((name) => /^segment-\d+$/.test(name))
  const contents = await Promise.all(segments.map((name) => readFile(join(directory, name))))
  return contents.filter((content) => content.toString('latin1', 0, 5) === 'HDWRJ').length
}
