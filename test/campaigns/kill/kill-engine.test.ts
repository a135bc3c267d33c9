// @module-tag nightly

import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { type Engine, HeadwaterError, open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { temporaryDirectory } from '../../storage/filesystem/directories.ts'
import { bundleProgram, Child } from '../../support/child-process.ts'
import { byRun } from '../../support/run-size.ts'
import { campaignOf } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import {
  BASIN,
  bodyAt,
  fencingTokenOf,
  isCommandAt,
  STREAMS,
  trimPointOf,
} from './children/stream-records.ts'

const kill = campaignOf('kill', { rounds: byRun({ quick: 4, full: 12 }), seed: 1 })
const { rounds, seed } = kill.options

test(`a new engine reads everything that a killed one acknowledged (${rounds} rounds)`, async () => {
  const prng = new Prng(seed)
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await bundleProgram(new URL('./children/engine-writer.ts', import.meta.url), base)
  const start = (round: number): Child =>
    new Child(program, [directory, `${round}`, prng.pick(['power-loss', 'process-crash'])])
  const tails = new Map(STREAMS.map((name) => [name, 0]))
  const progress = new Progress(kill, 'rounds', rounds)
  let next = start(0)
  for (let round = 0; round < rounds; round++) {
    const child = next
    next = start(round + 1)
    child.send('go')
    await child.printed(1 + prng.below(300))
    await child.kill()
    const hw = await open({ storage: filesystem(directory) })
    for (const name of STREAMS) {
      const tail = await checkStream(hw, name, Math.max(tails.get(name)!, acknowledged(child.lines, name)))
      tails.set(name, tail)
    }
    await checkShortStreams(hw, child.lines)
    await hw.close()
    progress.pass()
  }
  await next.kill()
  progress.close('engines')
  // Few rounds may not get as far.
  if (!kill.runsAll) return
  for (const [name, tail] of tails) expect(trimPointOf(tail), `trim point of ${name}`).toBeGreaterThan(0)
}, 3_600_000)

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
  for await (const { records } of stream
    .read({ seqNum: 0, count: tail - expected }, { as: 'bytes' })
    .batches()) {
    for (const { seqNum, body } of records) {
      expect(seqNum).toBe(expected++)
      if (!isCommandAt(seqNum)) expect(new TextDecoder().decode(body)).toBe(bodyAt(name, seqNum))
    }
  }
  expect(expected, `records of ${name}`).toBe(tail)
  return tail
}

/** The creations and deletions in the output of a writer. */
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
  const { items } = await hw.basin(BASIN).listStreams({ prefix: name, limit: 1000 })
  return items.some((stream) => stream.name === name)
}

function acknowledged(lines: readonly string[], name: string): number {
  return Number(lines.findLast((line) => line.startsWith(`${name} `))?.split(' ')[1] ?? 0)
}
