// @module-tag nightly

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Engine, HeadwaterError, open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { temporaryDirectory } from '../../storage/filesystem/directories.ts'
import { DRIVERS } from '../../storage/sqlite/databases.ts'
import { bundleProgram, Child } from '../../support/child-process.ts'
import { campaignOf, replayCommand } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { STORAGES, type StorageName } from './children/storages.ts'
import {
  BASIN,
  bodyAt,
  fencingTokenOf,
  isCommandAt,
  STREAMS,
  trimPointOf,
} from './children/stream-records.ts'

const kill = campaignOf('kill', { rounds: 12, seed: 1 })
const { rounds, seed } = kill.options

interface Plan {
  readonly durability: 'power-loss' | 'process-crash'
  /**
   * The number of acknowledgements after which the process is killed; with 0, while it opens the directory.
   */
  readonly acknowledgements: number
  /** Whether the next writer is the first to open the directory. */
  readonly isUnchecked: boolean
}

function planOf(prng: Prng, round: number): Plan {
  return {
    durability: prng.pick(['power-loss', 'process-crash']),
    acknowledgements: round % 4 === 3 ? 0 : prng.below(300),
    isUnchecked: round < rounds - 1 && prng.chance(0.2),
  }
}

/** Node 20 has SQLite only with the package `better-sqlite3`. */
const HAS_SQLITE = Object.keys(DRIVERS).length > 0
const KILLED = (Object.keys(STORAGES) as StorageName[]).filter((name) => name !== 'sqlite' || HAS_SQLITE)

test.each(KILLED)(
  `recovers everything that a killed engine acknowledged, %s (${rounds} rounds)`,
  async (storage) => {
    const prng = new Prng(seed)
    const base = await temporaryDirectory()
    const directory = join(base, 'data')
    await mkdir(directory)
    const program = await bundleProgram(new URL('./children/writer.ts', import.meta.url))
    const plans = Array.from({ length: rounds }, (_, round) => planOf(prng, round))
    const start = (round: number): Child | undefined => {
      const plan = plans[round]
      return plan && new Child(program, [storage, directory, `${round}`, plan.durability])
    }
    const tails = new Map(STREAMS.map((name) => [name, 0]))
    const lines: string[] = []
    const progress = new Progress(kill, 'rounds', rounds)
    let next = start(0)
    for (const [round, plan] of plans.entries()) {
      const child = next!
      // Starts while this one works.
      next = start(round + 1)
      await untilKilled(child, plan)
      lines.push(...child.lines)
      if (!plan.isUnchecked) {
        await check(storage, directory, tails, lines.splice(0)).catch((error: Error) => {
          const replay = replayCommand('kill', { rounds, seed })
          const what = `${storage}, round ${round}, ${JSON.stringify(plan)}`
          throw new Error(`${what}: ${error.message}\nReplay: ${replay}`, { cause: error })
        })
      }
      progress.pass()
    }
    progress.close()
  },
  3_600_000,
)

async function untilKilled(child: Child, { acknowledgements }: Plan): Promise<void> {
  child.send('go')
  const acknowledged = () => child.lines.filter((line) => line.startsWith('stream-')).length
  // It prints that it begins.
  await child.printed(1)
  while (!child.hasEnded && acknowledged() < acknowledgements) await child.printed(child.lines.length + 1)
  expect(child.hasEnded, 'the writer ended before it was killed').toBe(false)
  await child.kill()
}

/** Compares the directory with the output of all writers since the last check. */
async function check(
  storage: StorageName,
  directory: string,
  tails: Map<string, number>,
  lines: readonly string[],
): Promise<void> {
  const hw = await open({ storage: STORAGES[storage](directory) })
  for (const name of STREAMS) {
    tails.set(name, await checkStream(hw, name, Math.max(tails.get(name)!, acknowledgedTail(lines, name))))
  }
  await checkShortStreams(hw, lines)
  await hw.close()
}

function acknowledgedTail(lines: readonly string[], name: string): number {
  return Number(lines.findLast((line) => line.startsWith(`${name} `))?.split(' ')[1] ?? 0)
}

/** Resolves to the tail. */
async function checkStream(hw: Engine, name: string, atLeast: number): Promise<number> {
  // The writer was killed before it created the stream.
  if (atLeast === 0 && !(await exists(hw, name))) return 0
  const stream = hw.basin(BASIN, { autoCreate: false }).stream(name)
  const { seqNum: tail } = await stream.checkTail()
  expect(tail, `tail of ${name}`).toBeGreaterThanOrEqual(atLeast)
  const mismatch = await stream.append('x', { fencingToken: 'another' }).catch((error: unknown) => error)
  expect(HeadwaterError.is(mismatch) && mismatch.fencingToken, `fence of ${name}`).toBe(fencingTokenOf(tail))
  let expected = trimPointOf(tail)
  if (expected === tail) return tail
  const reading = stream.read({ seqNum: 0, count: tail - expected }, { as: 'bytes' })
  for await (const { records } of reading.batches()) {
    for (const { seqNum, body } of records) {
      expect(seqNum).toBe(expected++)
      if (!isCommandAt(seqNum)) expect(new TextDecoder().decode(body)).toBe(bodyAt(name, seqNum))
    }
  }
  expect(expected, `records of ${name}`).toBe(tail)
  return tail
}

/** The creations and deletions in the output of writers. */
async function checkShortStreams(hw: Engine, lines: readonly string[]): Promise<void> {
  const last = new Map<string, string>()
  for (const line of lines) {
    const [kind = '', name = ''] = line.split(' ')
    if (name.startsWith('short-')) last.set(name, kind)
  }
  for (const [name, kind] of last) {
    if (kind === 'created') expect(await exists(hw, name), name).toBe(true)
    if (kind === 'deleted') expect(await exists(hw, name), name).toBe(false)
  }
}

async function exists(hw: Engine, name: string): Promise<boolean> {
  // Opening a basin would create it.
  const { items: basins } = await hw.listBasins({ prefix: BASIN })
  if (basins.length === 0) return false
  const { items } = await hw.basin(BASIN).listStreams({ prefix: name, limit: 1000 })
  return items.some((stream) => stream.name === name)
}
