// @module-tag nightly

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDirectory } from '../../../adapters/storage/filesystem/shared-directory.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { temporaryDirectory } from '../../storage/filesystem/directories.ts'
import { bundleProgram, Child } from '../../support/child-process.ts'
import { campaignOf, replayCommand } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { KilledWriters } from './check-killed.ts'
import { LARGE_BLOCK_BYTES, ROLL_BYTES } from './children/blocks.ts'

const kill = campaignOf('kill', { rounds: 12, seed: 1 })
const { rounds, seed } = kill.options

/**
 * At a random acknowledgement, or before a matching file operation, after fewer than `below` other matches.
 */
const MOMENTS: readonly (readonly [what: string, operations: string, below: number])[] = [
  ['while it writes', '', 0],
  ['while it opens the directory', '.', 20],
  ['while it writes a group', '^(write|datasync) journal', 30],
  ['while it begins a journal', 'journal-\\d+(\\.tmp)?( create|)$', 8],
  ['while it rolls', '^(open|write|datasync|rename|link) (segment|checkpoint)', 30],
  ['while it removes files', '^unlink', 12],
]

test(`recovers everything that a killed storage acknowledged (${rounds} rounds)`, async () => {
  const prng = new Prng(seed)
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await bundleProgram(new URL('./children/writer.ts', import.meta.url), base)
  const writers = new KilledWriters()
  const start = (round: number): Child => {
    const [, operations, below] = MOMENTS[round % MOMENTS.length]!
    const durability = prng.pick(['power-loss', 'process-crash'])
    return new Child(program, [directory, `${round}`, durability, operations, `${prng.below(below)}`])
  }
  const progress = new Progress(kill, 'rounds', rounds)
  const counts = new Map(MOMENTS.map(([what]) => [what, 0]))
  let adopted = 0
  let next = start(0)
  for (let round = 0; round < rounds; round++) {
    const child = next
    const [what] = MOMENTS[round % MOMENTS.length]!
    // Starts while this one works.
    next = start(round + 1)
    child.send('go')
    await child.printed(what === 'while it writes' ? 1 + prng.below(400) : 2_000)
    if (child.hasEnded || what === 'while it writes') counts.set(what, counts.get(what)! + 1)
    await child.kill()
    adopted += await adoptedIn(directory)
    // Sometimes the next writer is the first to open the directory.
    if (prng.chance(0.2)) {
      writers.note(child.lines)
      progress.pass()
      continue
    }
    const options = { rollBytes: ROLL_BYTES, largeBlockBytes: LARGE_BLOCK_BYTES }
    const session = await openDirectory(
      directory,
      { durability: 'power-loss', ...options },
      { clock: systemClock, onLogChanged: () => {} },
    )
    await writers.check(session, child.lines).catch((error: Error) => {
      const replay = replayCommand('kill', { rounds, seed })
      throw new Error(`round ${round}, killed ${what}: ${error.message}\nReplay: ${replay}`, { cause: error })
    })
    await session.close()
    progress.pass()
  }
  await next.kill()
  progress.close()
  // Few rounds may miss a moment.
  if (!kill.runsAll) return
  for (const [what, count] of counts) expect(count, what).toBeGreaterThan(rounds / MOMENTS.length / 2)
  expect(adopted, 'adopted journals').toBeGreaterThan(0)
}, 3_600_000)

/** Segments that begin with the header of a journal. */
async function adoptedIn(directory: string): Promise<number> {
  const segments = (await readdir(directory)).filter((name) => /^segment-\d+$/.test(name))
  const contents = await Promise.all(segments.map((name) => readFile(join(directory, name))))
  return contents.filter((content) => content.toString('latin1', 0, 5) === 'HDWRJ').length
}
