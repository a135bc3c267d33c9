import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { localFileSystem } from '../../../adapters/storage/filesystem/local-file-system.ts'
import { refuseOwners } from '../../../adapters/storage/filesystem/owner.ts'
import { thisProcess } from '../../../adapters/storage/filesystem/process-identity.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { Child, childProgram } from './child-process.ts'
import { temporaryDirectory } from './directories.ts'

const onLinux = process.platform === 'linux'
/** Why a test does not run. */
const isLocal = (await localFileSystem(tmpdir())) !== undefined
const localOnly = isLocal
  ? ''
  : ' (skipped: the temporary directory is on a file system that is not known to be local)'
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
        writeFile(path, `${JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), ...members })}\n`)
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
      ['of another start of a machine', { boot: 'another', filesystem: undefined }],
      ['of another start, on a file system of another kind', { boot: 'another', filesystem: 'another' }],
      ['on another file system', { device: 0, filesystem: undefined }],
      ['of which no socket is told', { device: undefined }],
    ])('one %s may run, though nobody listens', async (_, members) => {
      const { holder, directory, change } = await holderElsewhere('until-told')
      await change(members)
      await holder.kill()
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    })

    test.runIf(isLocal)(`one from before a loss of power is taken over${localOnly}`, async () => {
      const { holder, directory, change } = await holderElsewhere('until-told')
      await holder.kill()
      await change({ boot: 'another', device: 0 })
      await (await open(directory)).close()
    })

    test('one whose socket was made a file by a copy may run', async () => {
      const { holder, directory } = await holderElsewhere('until-told')
      await holder.kill()
      for (const file of await readdir(directory)) {
        if (!file.endsWith('.sock')) continue
        await unlink(join(directory, file))
        await writeFile(join(directory, file), '')
      }
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
  for (const text of ['', 'null', '{}', `{"pid":1,"host":"${'h'.repeat(4096)}"}`]) {
    await writeFile(path, text)
    await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    expect(await readFile(path, 'utf8')).toBe(text)
  }
})

test.runIf(process.platform !== 'win32')(
  `a pipe with the name of an owner fails the opening${process.platform === 'win32' ? ' (skipped: Windows has none)' : ''}`,
  async () => {
    const directory = await temporaryDirectory()
    const path = join(directory, 'owner-00000000-0000-4000-8000-000000000000')
    execFileSync('mkfifo', [path])
    await expect(open(directory)).rejects.toMatchObject({
      kind: 'io',
      message: expect.stringContaining(path),
    })
  },
)

test('looking for owners only is refused by one that may be alive, and changes nothing', async () => {
  const directory = await temporaryDirectory()
  const gone = JSON.stringify({ ...(await thisProcess()), pid: 2 ** 30 })
  await writeFile(join(directory, 'owner-11111111-0000-4000-8000-000000000000'), `${gone}\n`)
  const before = await readdir(directory)
  await refuseOwners(directory)
  expect(await readdir(directory)).toEqual(before)
  const session = await open(directory)
  await expect(refuseOwners(directory)).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
  await session.close()
  await refuseOwners(directory)
})

test('openings leave nothing behind', async () => {
  const directory = await temporaryDirectory()
  const descriptors = async () => (onLinux ? (await readdir('/proc/self/fd')).length : 0)
  await (await open(directory)).close()
  const before = await descriptors()
  for (let i = 0; i < 100; i++) {
    const session = await open(directory)
    await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    await session.close()
  }
  expect(await descriptors()).toBeLessThanOrEqual(before + 1)
  expect(await readdir(directory)).toEqual([])
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
  const text =
    owner === undefined ? '' : `${JSON.stringify({ since: '2026-01-01T00:00:00.000Z', ...owner })}\n`
  await writeFile(path, text)
  return path
}
