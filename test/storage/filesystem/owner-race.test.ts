import { appendFile, readdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { ownDirectory } from '../../../adapters/storage/filesystem/owner.ts'
import { thisProcess } from '../../../adapters/storage/filesystem/process-identity.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { Child, childProgram } from './child-process.ts'
import { temporaryDirectory } from './directories.ts'

/** Before and behind every name that is made. */
const FIRST = 'owner-00000000-0000-0000-0000-000000000000'
const LAST = 'owner-ffffffff-ffff-ffff-ffff-ffffffffffff'

test.each([2, 6])('of %i processes that open a directory at once, exactly one has it', async (count) => {
  const base = await temporaryDirectory()
  const program = await childProgram('holder', base)
  for (let round = 0; round < 3; round++) {
    const directory = join(base, `data-${round}`)
    const children = Array.from({ length: count }, () => new Child(program, [directory]))
    await Promise.all(children.map((child) => child.told(1)))
    const told = children.map(({ lines }) => lines[0]!.split(':')[0]).sort()
    expect(told).toEqual([...Array.from({ length: count - 1 }, () => 'blocked'), 'open'])
    await Promise.all(children.map((child) => child.end()))
    await (await open(directory)).close()
  }
})

test.each([2, 3, 10])(
  'of %i openings at once in one process, exactly one succeeds, and nothing is left',
  async (count) => {
    const base = await temporaryDirectory()
    for (let round = 0; round < 20; round++) {
      const directory = join(base, `data-${round}`)
      const openings = await Promise.allSettled(Array.from({ length: count }, () => open(directory)))
      const sessions = openings.flatMap((opening) => (opening.status === 'fulfilled' ? [opening.value] : []))
      const failures = openings.flatMap((opening) => (opening.status === 'rejected' ? [opening.reason] : []))
      expect(sessions).toHaveLength(1)
      for (const failure of failures) expect(failure).toMatchObject({ kind: 'blocked' })
      await sessions[0]!.close()
      expect(await readdir(directory)).not.toContainEqual(expect.stringMatching(/^owner/))
    }
  },
)

test('while openings come and go, never two have the directory', async () => {
  const directory = await temporaryDirectory()
  let holders = 0
  let held = 0
  const comeAndGo = async (): Promise<void> => {
    for (let round = 0; round < 40; round++) {
      const owned = await ownDirectory(directory, systemClock).catch((error) => {
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
  await Promise.all(Array.from({ length: 4 }, comeAndGo))
  expect(held).toBeGreaterThan(0)
})

test('a candidate whose name comes first is not waited for', async () => {
  const directory = await temporaryDirectory()
  const path = join(directory, FIRST)
  await writeFile(path, await thisAsCandidate())
  await expect(ownDirectory(directory, virtualClock())).rejects.toThrow(
    `${directory} is being opened by process ${process.pid}`,
  )
  expect(await readdir(directory)).toEqual([FIRST])
})

test('a candidate whose name comes later is waited for until it gives up', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, LAST), await thisAsCandidate())
  const clock = virtualClock()
  const opening = ownDirectory(directory, clock)
  await untilCandidates(directory, 2)
  await unlink(join(directory, LAST))
  const owned = await advancing(clock, opening)
  expect(await readFile(join(directory, await onlyOwner(directory)), 'utf8')).toMatch(/\}\n$/)
  await owned.release()
})

test('a candidate that has the directory after all is not waited for any longer', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, LAST), await thisAsCandidate())
  const clock = virtualClock()
  const start = clock.now()
  const opening = ownDirectory(directory, clock)
  await untilCandidates(directory, 2)
  await appendFile(join(directory, LAST), '\n')
  await expect(advancing(clock, opening)).rejects.toThrow(`${directory} is open in process ${process.pid}`)
  expect(clock.now() - start).toBeLessThan(1000)
})

test('a candidate that does not come to an end is waited for during five seconds', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, LAST), await thisAsCandidate())
  const clock = virtualClock()
  const start = clock.now()
  await expect(advancing(clock, ownDirectory(directory, clock))).rejects.toMatchObject({ kind: 'blocked' })
  expect(clock.now() - start).toBe(4990)
  expect(await readdir(directory)).toEqual([LAST])
})

test('a candidate that crashed is not waited for', async () => {
  const directory = await temporaryDirectory()
  const gone = JSON.parse(await thisAsCandidate())
  for (const name of [FIRST, LAST]) {
    await writeFile(join(directory, name), JSON.stringify({ ...gone, pid: 2 ** 30 }))
  }
  const owned = await ownDirectory(directory, virtualClock())
  await owned.release()
  expect(await readdir(directory)).toEqual([])
})

function open(directory: string): Promise<StorageSession> {
  return filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
}

async function thisAsCandidate(): Promise<string> {
  return JSON.stringify({ ...(await thisProcess()), since: '2026-01-01T00:00:00.000Z' })
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

/** Lets time pass until it has settled. */
async function advancing<Result>(
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
