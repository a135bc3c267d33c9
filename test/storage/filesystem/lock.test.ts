import { once } from 'node:events'
import { readdir, rename, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { assertUnlocked, lockDirectory } from '../../../adapters/storage/media/lock.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { bundleProgram, Child } from '../../support/child-process.ts'
import { temporaryDirectory } from './directories.ts'

const onLinux = process.platform === 'linux'
/** Why a test does not run. */
const linuxOnly = onLinux ? '' : ' (skipped: only Linux tells boot ids and start times of processes)'

test('a directory that another process has open is blocked, and the error names the process', {
  tags: ['slow'],
}, async () => {
  const { holder, directory } = await held()
  await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
  await expect(open(directory)).rejects.toThrow(
    `${directory} is open in process ${holder.pid} on ${hostname()}, since 20`,
  )
  process.kill(holder.pid, 'SIGSTOP')
  await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
  process.kill(holder.pid, 'SIGCONT')
  await holder.end()
  await (await open(directory)).close()
})

test.each([
  ['was killed', 'until-told', (holder: Child) => holder.kill()],
  ['exited without closing', 'exit-when-told', (holder: Child) => holder.end()],
] as const)('the lock of a process that %s is taken over', { tags: ['slow'] }, async (_, how, end) => {
  const { holder, directory } = await held(how)
  await end(holder)
  expect(await locks(directory)).toHaveLength(1)
  const session = await open(directory)
  expect(await locks(directory)).toHaveLength(1)
  await session.close()
  expect(await readdir(directory)).toEqual([])
})

test('a directory that another thread has open is blocked, and the error names the thread', {
  tags: ['slow'],
}, async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const session = await open(directory)
  const program = await bundleProgram(new URL('./children/holder.ts', import.meta.url), base)
  const worker = new Worker(program, { argv: [directory, 'worker'] })
  const [message] = await once(worker, 'message')
  expect(message).toBe(`blocked: ${directory} is open in another thread of this process (${process.pid})`)
  await session.close()
})

test.runIf(onLinux)(
  `the lock of a thread that was terminated is taken over${linuxOnly}`,
  { tags: ['slow'] },
  async () => {
    const base = await temporaryDirectory()
    const directory = join(base, 'data')
    const program = await bundleProgram(new URL('./children/holder.ts', import.meta.url), base)
    const worker = new Worker(program, { argv: [directory, 'worker'] })
    expect(await once(worker, 'message')).toEqual(['open'])
    await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked' })
    await worker.terminate()
    await (await open(directory)).close()
    expect(await readdir(directory)).toEqual([])
  },
)

interface OwnerFields {
  readonly pid: string
  readonly started: string
  readonly boot: string
  readonly host: string
}

test.runIf(onLinux).each<[string, 'taken over' | 'kept', Partial<OwnerFields>]>([
  ['of a process that does not exist', 'taken over', { pid: '4194303' }],
  ['of an earlier process with the same number', 'taken over', { started: '1' }],
  ['from before a restart of the machine', 'taken over', { boot: 'another' }],
  ['of this process', 'kept', {}],
  ['on another host', 'kept', { host: 'elsewhere' }],
  ['on another host that was restarted', 'kept', { host: 'elsewhere', boot: 'another' }],
  ['of a process that does not tell its boot', 'kept', { boot: '' }],
])(`a lock %s is %s${linuxOnly}`, async (_, outcome, fields) => {
  const directory = await temporaryDirectory()
  const name = await leftLock(directory, fields)
  if (outcome === 'taken over') {
    await (await open(directory)).close()
    expect(await readdir(directory)).toEqual([])
    return
  }
  await expect(open(directory)).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
  expect(await readdir(directory)).toEqual([name])
})

test('an error about an owner that may have ended names the file to remove', async () => {
  const directory = await temporaryDirectory()
  const name = await leftLock(directory, { host: 'else%20where' })
  await expect(open(directory)).rejects.toThrow('on else%20where, since ')
  const advice = `If that does not run any more, remove ${join(directory, name)}`
  await expect(open(directory)).rejects.toThrow(advice)
  await rename(join(directory, name), join(directory, 'lock-without-an-owner'))
  await expect(open(directory)).rejects.toThrow(`remove ${join(directory, 'lock-without-an-owner')}`)
})

test('of processes that open a directory at once, at most one has it, and one gets it in the end', {
  tags: ['slow'],
}, async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await bundleProgram(new URL('./children/holder.ts', import.meta.url), base)
  for (let round = 0; round < 3; round++) {
    const children = Array.from({ length: 4 }, () => new Child(program, [directory]))
    await Promise.all(children.map((child) => child.printed(1)))
    const opened = children.filter(({ lines }) => lines[0] === 'open')
    expect(opened.length).toBeLessThanOrEqual(1)
    for (const child of children) await child.end()
    await (await open(directory)).close()
  }
})

test('checking for owners rejects if one may be alive, and changes nothing', async () => {
  const directory = await temporaryDirectory()
  await assertUnlocked(directory)
  const session = await open(directory)
  const before = await readdir(directory)
  await expect(assertUnlocked(directory)).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
  expect(await readdir(directory)).toEqual(before)
  await session.close()
  await assertUnlocked(directory)
})

function open(directory: string): Promise<StorageSession> {
  return filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
}

/** A directory that another process has open. */
async function held(how = 'until-told') {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const program = await bundleProgram(new URL('./children/holder.ts', import.meta.url), base)
  const holder = new Child(program, [directory, how])
  await holder.printed(1)
  expect(holder.lines).toEqual(['open'])
  return { holder, directory }
}

/** Leaves the lock of this process, with other fields. Resolves to its name. */
async function leftLock(directory: string, fields: Partial<OwnerFields>): Promise<string> {
  const lock = await lockDirectory(directory)
  const [own] = await locks(directory)
  await lock.release()
  const [pid, started, boot, thread, ...hosts] = own!.slice('lock-'.length).split('.')
  const owner = { pid, started, boot, host: hosts.join('.'), ...fields }
  const name = `lock-${owner.pid}.${owner.started}.${owner.boot}.${thread}.${owner.host}`
  await writeFile(join(directory, name), '')
  return name
}

async function locks(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.startsWith('lock-'))
}
