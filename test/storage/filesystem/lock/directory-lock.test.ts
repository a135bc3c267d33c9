import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { assertUnlocked, lockDirectory } from '../../../../adapters/storage/filesystem/lock/directory-lock.ts'
import {
  currentProcess,
  localFileSystem,
} from '../../../../adapters/storage/filesystem/lock/local-process.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { bundleProgram, Child } from '../../../support/child-process.ts'
import { temporaryDirectory } from '../directories.ts'

const onLinux = process.platform === 'linux'
/** Why a test does not run. */
const isLocal = (await localFileSystem(tmpdir())) !== undefined
const localOnly = isLocal
  ? ''
  : ' (skipped: the temporary directory is on a file system that is not known to be local)'
const linuxOnly = onLinux ? '' : ' (skipped: only Linux tells start times and namespaces of processes)'

test('a directory that another process has open is blocked, and the error names the process', {
  tags: ['slow'],
}, async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const holder = new Child(await bundleProgram(new URL('../children/holder.ts', import.meta.url), base), [
    directory,
  ])
  await holder.printed(1)
  expect(holder.lines).toEqual(['open'])
  await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
  await expect(open(directory)).rejects.toThrow(
    new RegExp(`${directory} is open in process ${holder.pid} on ${hostname()}, since 20\\d\\d-`),
  )
  await holder.end()
  await (await open(directory)).close()
})

test('the lock of a killed process is reclaimed', { tags: ['slow'] }, async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await bundleProgram(new URL('../children/holder.ts', import.meta.url), base)
  const holder = new Child(program, [directory])
  await holder.printed(1)
  await holder.kill()
  expect(await owners(directory)).toHaveLength(1)
  const session = await open(directory)
  expect(await owners(directory)).toHaveLength(1)
  await session.close()
  expect(await owners(directory)).toEqual([])
})

test('a directory that another thread has open is blocked, and the error names the thread', {
  tags: ['slow'],
}, async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const session = await open(directory)
  const program = await bundleProgram(new URL('../children/holder.ts', import.meta.url), base)
  const worker = new Worker(program, { argv: [directory, 'worker'] })
  const [message] = await once(worker, 'message')
  expect(message).toBe(`blocked: ${directory} is open in another thread of this process (${process.pid})`)
  await session.close()
})

test.runIf(onLinux)(
  `a process that reuses the pid of the owner is not taken for the owner${linuxOnly}`,
  async () => {
    const directory = await temporaryDirectory()
    await writeOwnerFile(directory, { ...(await currentProcess()), started: '1' })
    await (await open(directory)).close()
  },
)

test.runIf(onLinux)(
  `an owner in another container with the same host name may be alive${linuxOnly}`,
  async () => {
    const directory = await temporaryDirectory()
    await writeOwnerFile(directory, { ...(await currentProcess()), pid: 2 ** 22 + 1, namespace: 'pid:[1]' })
    await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
  },
)

describe.runIf(onLinux)(
  `an owner whose process cannot be looked up is probed by its socket${linuxOnly}`,
  { tags: ['slow'] },
  () => {
    async function holderInContainer(how: string, directoryName = 'data') {
      const base = await temporaryDirectory()
      const directory = join(base, directoryName)
      const holder = new Child(await bundleProgram(new URL('../children/holder.ts', import.meta.url), base), [
        directory,
        how,
      ])
      await holder.printed(1)
      expect(holder.lines).toEqual(['open'])
      const [name] = await owners(directory)
      const path = join(directory, name!)
      const change = async (members: object) =>
        writeFile(path, `${JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), ...members })}\n`)
      await change({ namespace: 'pid:[1]', host: 'container' })
      return { holder, directory, change }
    }

    test('the lock of a running or stopped process is kept', async () => {
      const { holder, directory } = await holderInContainer('until-told')
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
      process.kill(holder.pid, 'SIGSTOP')
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
      process.kill(holder.pid, 'SIGCONT')
      await holder.end()
      await (await open(directory)).close()
      expect((await readdir(directory)).filter((file) => file.startsWith('owner'))).toEqual([])
    })

    test.each([
      ['a short path', 'data'],
      ['a path that is longer than the address of a socket', 'x'.repeat(150)],
    ])('the lock of a killed process is reclaimed (%s)', async (_, directoryName) => {
      const { holder, directory } = await holderInContainer('until-told', directoryName)
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
      await holder.kill()
      await (await open(directory)).close()
      expect((await readdir(directory)).filter((file) => file.startsWith('owner'))).toEqual([])
    })

    test('the lock of a process that exited without closing is reclaimed', async () => {
      const { holder, directory } = await holderInContainer('exit-when-told')
      await holder.end()
      expect(await owners(directory)).toHaveLength(1)
      await (await open(directory)).close()
    })

    test('a process reclaims the lock of its terminated worker', async () => {
      const base = await temporaryDirectory()
      const directory = join(base, 'data')
      const worker = new Worker(
        await bundleProgram(new URL('../children/holder.ts', import.meta.url), base),
        {
          argv: [directory, 'worker'],
        },
      )
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
    ])('an owner %s may be alive, although nothing listens', async (_, members) => {
      const { holder, directory, change } = await holderInContainer('until-told')
      await change(members)
      await holder.kill()
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    })

    test.runIf(isLocal)(
      `the lock of an owner from before a power loss is reclaimed${localOnly}`,
      async () => {
        const { holder, directory, change } = await holderInContainer('until-told')
        await holder.kill()
        await change({ boot: 'another', device: 0 })
        await (await open(directory)).close()
      },
    )

    test('an owner whose socket was removed may be alive', async () => {
      const { holder, directory } = await holderInContainer('until-told')
      for (const file of await readdir(directory)) {
        if (file.endsWith('.sock')) await unlink(join(directory, file))
      }
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
      await holder.kill()
      await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    })
  },
)

test('an owner on another host may be alive', async () => {
  const directory = await temporaryDirectory()
  const path = await writeOwnerFile(directory, { pid: 1, host: 'elsewhere' })
  await expect(open(directory)).rejects.toThrow(`process 1 on elsewhere`)
  await expect(open(directory)).rejects.toThrow(`remove ${path}`)
})

test('a damaged owner file blocks and is kept', async () => {
  const directory = await temporaryDirectory()
  const path = await writeOwnerFile(directory, undefined)
  for (const text of ['', 'null', '{}', `{"pid":1,"host":"${'h'.repeat(4096)}"}`]) {
    await writeFile(path, text)
    await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    expect(await readFile(path, 'utf8')).toBe(text)
  }
})

test.runIf(process.platform !== 'win32')(
  `a pipe with the name of an owner file makes opening fail${process.platform === 'win32' ? ' (skipped: Windows has none)' : ''}`,
  { tags: ['slow'] },
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

test('checking for owners rejects if one may be alive, and changes nothing', async () => {
  const directory = await temporaryDirectory()
  const gone = JSON.stringify({ ...(await currentProcess()), pid: 2 ** 30 })
  await writeFile(join(directory, 'owner-11111111-0000-4000-8000-000000000000'), `${gone}\n`)
  const before = await readdir(directory)
  await assertUnlocked(directory)
  expect(await readdir(directory)).toEqual(before)
  const session = await open(directory)
  await expect(assertUnlocked(directory)).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
  await session.close()
  await assertUnlocked(directory)
})

test('an opening leaves no owner files', async () => {
  const directory = await temporaryDirectory()
  const descriptors = async () => (onLinux ? (await readdir('/proc/self/fd')).length : 0)
  await (await open(directory)).close()
  const before = await descriptors()
  for (let i = 0; i < 4; i++) {
    const session = await open(directory)
    await expect(lockDirectory(directory, systemClock)).rejects.toMatchObject({ kind: 'blocked' })
    await session.close()
  }
  expect(await descriptors()).toBeLessThanOrEqual(before + 1)
  expect(await readdir(directory)).toEqual([])
})

function open(directory: string): Promise<StorageSession> {
  return filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
}

async function owners(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => /^owner-[^.]*$/.test(name))
}

async function writeOwnerFile(directory: string, owner: object | undefined): Promise<string> {
  const path = join(directory, 'owner-00000000-0000-4000-8000-000000000000')
  const text =
    owner === undefined ? '' : `${JSON.stringify({ since: '2026-01-01T00:00:00.000Z', ...owner })}\n`
  await writeFile(path, text)
  return path
}
