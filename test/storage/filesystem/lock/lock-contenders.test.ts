// @module-tag slow

import { readdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { lockDirectory } from '../../../../adapters/storage/filesystem/lock/directory-lock.ts'
import { currentProcess } from '../../../../adapters/storage/filesystem/lock/local-process.ts'
import { virtualClock } from '../../../../adapters/testing/index.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { bundleProgram, Child } from '../../../support/child-process.ts'
import { temporaryDirectory } from '../directories.ts'

/** Sort before and after every created name. */
const FIRST = 'owner-00000000-0000-0000-0000-000000000000'
const LAST = 'owner-ffffffff-ffff-ffff-ffff-ffffffffffff'

test.each([4])('exactly one of %i processes that open a directory at once gets the lock', async (count) => {
  const base = await temporaryDirectory()
  const program = await bundleProgram(new URL('../children/holder.ts', import.meta.url), base)
  for (let round = 0; round < 2; round++) {
    const directory = join(base, `data-${round}`)
    const children = Array.from({ length: count }, () => new Child(program, [directory]))
    await Promise.all(children.map((child) => child.printed(1)))
    const outcomes = children.map(({ lines }) => lines[0]!.split(':')[0]).sort()
    expect(outcomes).toEqual([...Array.from({ length: count - 1 }, () => 'blocked'), 'open'])
    await Promise.all(children.map((child) => child.end()))
    await (await open(directory)).close()
  }
})

test.each([2, 10])('exactly one of %i concurrent attempts in one process gets the lock', async (count) => {
  for (let round = 0; round < 5; round++) {
    const directory = await temporaryDirectory()
    const attempts = Array.from({ length: count }, () => lockDirectory(directory, systemClock))
    const outcomes = await Promise.allSettled(attempts)
    const locked = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    expect(locked).toHaveLength(1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ kind: 'blocked' })
    }
    await locked[0]!.release()
    expect(await readdir(directory)).toEqual([])
  }
})

test('concurrent openings never lock the directory twice', async () => {
  const directory = await temporaryDirectory()
  let holders = 0
  let held = 0
  const lockAndRelease = async (): Promise<void> => {
    for (let round = 0; round < 15; round++) {
      const owned = await lockDirectory(directory, systemClock).catch((error) => {
        expect(error).toMatchObject({ kind: 'blocked' })
      })
      if (owned === undefined) continue
      expect(++holders).toBe(1)
      await readdir(directory)
      holders--
      held++
      await owned.release()
    }
  }
  await Promise.all(Array.from({ length: 4 }, lockAndRelease))
  expect(held).toBeGreaterThan(0)
})

test('an opening waits for a candidate with a higher name to give up', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, LAST), await candidateFile())
  const clock = virtualClock()
  const opening = lockDirectory(directory, clock)
  await untilCandidates(directory, 2)
  await unlink(join(directory, LAST))
  const owned = await advanceUntilSettled(clock, opening)
  expect(await readFile(join(directory, await onlyOwner(directory)), 'utf8')).toMatch(/\}\n$/)
  await owned.release()
})

test('an opening waits at most five seconds for a candidate', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, LAST), await candidateFile())
  const clock = virtualClock()
  const start = clock.now()
  await expect(advanceUntilSettled(clock, lockDirectory(directory, clock))).rejects.toMatchObject({
    kind: 'blocked',
  })
  expect(clock.now() - start).toBe(4990)
  expect(await readdir(directory)).toEqual([LAST])
})

test('an opening does not wait for a crashed candidate', async () => {
  const directory = await temporaryDirectory()
  const crashed = JSON.parse(await candidateFile())
  for (const name of [FIRST, LAST]) {
    await writeFile(join(directory, name), JSON.stringify({ ...crashed, pid: 2 ** 30 }))
  }
  const owned = await lockDirectory(directory, virtualClock())
  await owned.release()
  expect(await readdir(directory)).toEqual([])
})

function open(directory: string): Promise<StorageSession> {
  return filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
}

async function candidateFile(): Promise<string> {
  return JSON.stringify({ ...(await currentProcess()), since: '2026-01-01T00:00:00.000Z' })
}

async function untilCandidates(directory: string, count: number): Promise<void> {
  const candidates = async () => (await readdir(directory)).filter((name) => /^owner-[^.]*$/.test(name))
  while ((await candidates()).length < count);
}

async function onlyOwner(directory: string): Promise<string> {
  const [name, ...others] = (await readdir(directory)).filter((file) => /^owner-[^.]*$/.test(file))
  expect(others).toEqual([])
  return name!
}

/** Advances the time until the promise has settled. */
async function advanceUntilSettled<Result>(
  clock: ReturnType<typeof virtualClock>,
  work: Promise<Result>,
): Promise<Result> {
  let isSettled = false
  const settle = (): void => {
    isSettled = true
  }
  work.then(settle, settle)
  while (!isSettled) {
    if (clock.pending > 0) await clock.advance('10ms')
    else await setImmediate()
  }
  return work
}
