import { once } from 'node:events'
import { readdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { thisProcess } from '../../../adapters/storage/filesystem/process-identity.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { Child, childProgram } from './child-process.ts'
import { temporaryDirectory } from './directories.ts'

const onLinux = process.platform === 'linux'
/** Why a test does not run. */
const linuxOnly = onLinux ? '' : ' (skipped: only Linux tells start times and namespaces of processes)'

test('a directory that another process has open is blocked, by name', async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const holder = new Child(await childProgram('holder', base), [directory])
  await holder.told(1)
  expect(holder.lines).toEqual(['open'])
  await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
  await expect(open(directory)).rejects.toThrow(
    new RegExp(`${directory} is open in process ${holder.pid} on ${hostname()}, since 20\\d\\d-`),
  )
  await holder.end()
  await (await open(directory)).close()
})

test('what a killed process held is taken over', async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await childProgram('holder', base)
  const holder = new Child(program, [directory])
  await holder.told(1)
  await holder.kill()
  expect(await owners(directory)).toHaveLength(1)
  const session = await open(directory)
  expect(await owners(directory)).toHaveLength(1)
  await session.close()
  expect(await owners(directory)).toEqual([])
})

test('of processes that open a directory at once, at most one has it, and later one can', async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await childProgram('holder', base)
  const children = Array.from({ length: 6 }, () => new Child(program, [directory]))
  await Promise.all(children.map((child) => child.told(1)))
  const told = children.map(({ lines }) => lines[0]!.split(':')[0])
  expect(told.filter((line) => line === 'open').length).toBeLessThanOrEqual(1)
  expect(told.every((line) => line === 'open' || line === 'blocked')).toBe(true)
  await Promise.all(children.map((child) => child.end()))
  await (await open(directory)).close()
})

test('a second opening in one process is blocked until the first is closed', async () => {
  const directory = await temporaryDirectory()
  const session = await open(directory)
  await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
  await session.close()
  await (await open(directory)).close()
})

test.runIf(onLinux)(
  `a process that was given the number of the owner is not taken for it${linuxOnly}`,
  async () => {
    const directory = await temporaryDirectory()
    await leftBy(directory, { ...(await thisProcess()), started: '1' })
    await (await open(directory)).close()
  },
)

test.runIf(onLinux)(
  `an owner of another container with the same host name may be there${linuxOnly}`,
  async () => {
    const directory = await temporaryDirectory()
    await leftBy(directory, { ...(await thisProcess()), pid: 2 ** 22 + 1, namespace: 'pid:[1]' })
    await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
  },
)

describe.runIf(onLinux)(
  `an owner whose process cannot be looked up is asked by its socket${linuxOnly}`,
  () => {
    async function holderElsewhere(how: string, directoryName = 'data') {
      const base = await temporaryDirectory()
      const directory = join(base, directoryName)
      const holder = new Child(await childProgram('holder', base), [directory, how])
      await holder.told(1)
      expect(holder.lines).toEqual(['open'])
      const [name] = await owners(directory)
      const path = join(directory, name!)
      const change = async (members: object) =>
        writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), ...members }))
      await change({ namespace: 'pid:[1]', host: 'container' })
      return { holder, directory, change }
    }

    test('one that runs, or was stopped, is not taken over', async () => {
      const { holder, directory } = await holderElsewhere('until-told')
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
      process.kill(holder.pid, 'SIGSTOP')
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
      process.kill(holder.pid, 'SIGCONT')
      await holder.end()
      await (await open(directory)).close()
      expect((await readdir(directory)).filter((file) => file.startsWith('owner'))).toEqual([])
    })

    test.each(['data', 'a-path-that-is-longer-than-the-address-of-a-socket-'.repeat(3)])(
      'one that was killed is taken over (%s)',
      async (directoryName) => {
        const { holder, directory } = await holderElsewhere('until-told', directoryName)
        await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
        await holder.kill()
        await (await open(directory)).close()
        expect((await readdir(directory)).filter((file) => file.startsWith('owner'))).toEqual([])
      },
    )

    test('one that exited without closing is taken over', async () => {
      const { holder, directory } = await holderElsewhere('exit-when-told')
      await holder.end()
      expect(await owners(directory)).toHaveLength(1)
      await (await open(directory)).close()
    })

    test('a worker that was ended is taken over by its process', async () => {
      const base = await temporaryDirectory()
      const directory = join(base, 'data')
      const worker = new Worker(await childProgram('holder', base), { argv: [directory, 'worker'] })
      await once(worker, 'message')
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
      await worker.terminate()
      await (await open(directory)).close()
    })

    test.each([
      ['of another start of a machine', { boot: 'another', machine: 'another' }],
      ['on another file system', { device: 0 }],
      ['of which no socket is told', { device: undefined }],
    ])('one %s may run, though nobody listens', async (_, members) => {
      const { holder, directory, change } = await holderElsewhere('until-told')
      await change(members)
      await holder.kill()
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    })

    test('one whose socket somebody removed may run', async () => {
      const { holder, directory } = await holderElsewhere('until-told')
      for (const file of await readdir(directory)) {
        if (file.endsWith('.sock')) await unlink(join(directory, file))
      }
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
      await holder.kill()
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    })
  },
)

test('openings at once in one process are open or blocked, whatever they meet', async () => {
  const base = await temporaryDirectory()
  for (let round = 0; round < 20; round++) {
    const directory = join(base, `data-${round}`)
    const openings = await Promise.allSettled([open(directory), open(directory), open(directory)])
    const sessions = openings.flatMap((opening) => (opening.status === 'fulfilled' ? [opening.value] : []))
    const failures = openings.flatMap((opening) => (opening.status === 'rejected' ? [opening.reason] : []))
    expect(sessions.length).toBeLessThanOrEqual(1)
    for (const failure of failures) expect(failure).toMatchObject({ kind: 'blocked' })
    for (const session of sessions) await session.close()
    expect(await readdir(directory)).not.toContainEqual(expect.stringMatching(/^owner/))
  }
})

test('an owner whose file somebody removed closes all the same', async () => {
  const directory = await temporaryDirectory()
  const session = await open(directory)
  for (const name of await owners(directory)) await unlink(join(directory, name))
  await session.close()
})

test('an owner on another host may be there for all one knows', async () => {
  const directory = await temporaryDirectory()
  const path = await leftBy(directory, { pid: 1, host: 'elsewhere' })
  await expect(open(directory)).rejects.toThrow(`process 1 on elsewhere`)
  await expect(open(directory)).rejects.toThrow(`remove ${path}`)
})

test('a damaged owner file blocks, and is left alone', async () => {
  const directory = await temporaryDirectory()
  const path = await leftBy(directory, undefined)
  for (const text of ['', 'null', '{}']) {
    await writeFile(path, text)
    await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    expect(await readFile(path, 'utf8')).toBe(text)
  }
})

test('an opening that fails gives the directory up', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, 'checkpoint-0000000001'), 'damaged')
  await expect(open(directory)).rejects.toMatchObject({ kind: 'corrupt' })
  expect(await owners(directory)).toEqual([])
})

function open(directory: string): Promise<StorageSession> {
  return filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
}

async function owners(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => /^owner-[^.]*$/.test(name))
}

async function leftBy(directory: string, owner: object | undefined): Promise<string> {
  const path = join(directory, 'owner-00000000-0000-4000-8000-000000000000')
  const text = owner === undefined ? '' : JSON.stringify({ since: '2026-01-01T00:00:00.000Z', ...owner })
  await writeFile(path, text)
  return path
}
