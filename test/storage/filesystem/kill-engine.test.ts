import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { type Headwater, HeadwaterError, open } from '../../../src/index.ts'
import { Prng } from '../../../src/storage/conformance/prng.ts'
import { Child, childProgram } from './child-process.ts'
import {
  BASIN,
  bodyAt,
  fencingTokenOf,
  isCommandAt,
  STREAMS,
  trimPointOf,
} from './children/stream-records.ts'
import { temporaryDirectory } from './directories.ts'

const ROUNDS = Number(process.env.KILL_ROUNDS ?? '40')

test(`${ROUNDS} engines that are killed leave all that they acknowledged, as the next engine tells it`, async () => {
  const prng = new Prng(1)
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await childProgram('engine-writer', base)
  const start = (round: number): Child =>
    new Child(program, [directory, `${round}`, prng.pick(['sync', 'os'])])
  const tails = new Map(STREAMS.map((name) => [name, 0]))
  let next = start(0)
  for (let round = 0; round < ROUNDS; round++) {
    const child = next
    next = start(round + 1)
    child.send('go')
    await child.told(1 + prng.below(300))
    await child.kill()
    const hw = await open({ storage: filesystem(directory) })
    for (const name of STREAMS) {
      const tail = await checkStream(hw, name, Math.max(tails.get(name)!, acknowledged(child.lines, name)))
      tails.set(name, tail)
    }
    await checkShortStreams(hw, child.lines)
    await hw.close()
  }
  await next.kill()
  for (const [name, tail] of tails) expect(trimPointOf(tail), `trim point of ${name}`).toBeGreaterThan(0)
}, 300_000)

/** Resolves to the tail. */
async function checkStream(hw: Headwater, name: string, atLeast: number): Promise<number> {
  // Killed before it was created.
  if (atLeast === 0 && !(await exists(hw, name))) return 0
  const stream = hw.basin(BASIN, { autoCreate: false }).stream(name)
  const { seqNum: tail } = await stream.checkTail()
  expect(tail, `tail of ${name}`).toBeGreaterThanOrEqual(atLeast)
  const mismatch = await stream.append('x', { fencingToken: 'another' }).catch((error: unknown) => error)
  expect(HeadwaterError.is(mismatch) && mismatch.fencingToken, `fence of ${name}`).toBe(fencingTokenOf(tail))
  let expected = trimPointOf(tail)
  if (expected === tail) return tail
  for await (const { records } of stream.read({ seqNum: 0, count: tail - expected })) {
    for (const { seqNum, body } of records) {
      expect(seqNum).toBe(expected++)
      if (!isCommandAt(seqNum)) expect(new TextDecoder().decode(body)).toBe(bodyAt(name, seqNum))
    }
  }
  expect(expected, `records of ${name}`).toBe(tail)
  return tail
}

/** The creations and deletions that a writer told. */
async function checkShortStreams(hw: Headwater, lines: readonly string[]): Promise<void> {
  const last = new Map<string, string>()
  for (const line of lines) {
    const [what = '', name = ''] = line.split(' ')
    if (name.startsWith('short-')) last.set(name, what)
  }
  for (const [name, what] of last) {
    if (what === 'created') expect(await exists(hw, name), name).toBe(true)
    if (what === 'deleted') expect(await exists(hw, name), name).toBe(false)
  }
}

async function exists(hw: Headwater, name: string): Promise<boolean> {
  const { items } = await hw.basin(BASIN).listStreams({ prefix: name, limit: 1000 })
  return items.some((stream) => stream.name === name)
}

function acknowledged(lines: readonly string[], name: string): number {
  return Number(lines.findLast((line) => line.startsWith(`${name} `))?.split(' ')[1] ?? 0)
}
