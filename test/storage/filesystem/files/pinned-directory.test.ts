import { mkdir, readdir, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { nodeFiles } from '../../../../adapters/storage/filesystem/files/node-files.ts'
import { pinByPath } from '../../../../adapters/storage/filesystem/files/pinned-directory.ts'
import { openDirectory } from '../../../../adapters/storage/filesystem/shared-directory.ts'
import type { OpenFilesOptions } from '../../../../adapters/storage/filesystem/shared-storage.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { temporaryDirectory } from '../directories.ts'
import { openFiles } from '../open-files.ts'

const OPTIONS: OpenFilesOptions = { durability: 'power-loss', rollBytes: 20_000 }
const onLinux = process.platform === 'linux'
/** Why a test does not run. */
const linuxOnly = onLinux ? '' : ' (skipped: only on Linux do descriptors lead to directories)'

test.runIf(onLinux)(
  `an owner of a moved directory stops writing, and never touches the one in its place${linuxOnly}`,
  async () => {
    const { path, moved, owner } = await openAndMove()
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    const two = await openDirectory(path, OPTIONS, { clock: systemClock, onLogChanged: () => {} })
    await putDocuments(two, 'two', 60)
    const outcomes: PromiseSettledResult<void>[] = []
    for (const key of keysOf('one', 60)) outcomes.push(...(await Promise.allSettled([put(owner, key)])))
    expect(outcomes.at(-1)).toMatchObject({
      status: 'rejected',
      reason: { kind: 'io', nothingWritten: true },
    })
    await expect(
      openDirectory(moved, OPTIONS, { clock: systemClock, onLogChanged: () => {} }),
    ).rejects.toMatchObject({ kind: 'blocked' })
    await owner.close().catch(() => {})
    await two.close()
    log.mockRestore()
    expect(await storedKeys(path)).toEqual(keysOf('two', 60))
    const acknowledged = outcomes.filter(({ status }) => status === 'fulfilled').length
    expect(await storedKeys(moved)).toHaveLength(acknowledged)
    expect(await readdir(moved)).not.toContainEqual(expect.stringMatching(/^owner/))
  },
)

test('an owner without descriptor paths writes nothing to the old path of a moved directory', async () => {
  const path = join(await temporaryDirectory(), 'data')
  await mkdir(path)
  const owner = await openFiles(nodeFiles(await pinByPath(path)), OPTIONS, async () => {})
  await putDocuments(owner, 'one', 1)
  await rename(path, `${path}.moved`)
  const two = await openDirectory(path, OPTIONS, { clock: systemClock, onLogChanged: () => {} })
  await putDocuments(two, 'two', 5)
  const further = keysOf('one', 60).filter((key) => key !== 'one-0')
  const outcomes: PromiseSettledResult<void>[] = []
  for (const key of further) outcomes.push(...(await Promise.allSettled([put(owner, key)])))
  await owner.close().catch(() => {})
  await two.close()
  expect(await storedKeys(path)).toEqual(keysOf('two', 5))
  const acknowledged = outcomes.filter(({ status }) => status === 'fulfilled').length
  expect(await storedKeys(`${path}.moved`)).toHaveLength(1 + acknowledged)
})

test.each<[string, (path: string) => Promise<unknown>]>([
  ['moved away', (path) => rename(path, `${path}.moved`)],
  [
    'replaced',
    async (path) => {
      await rename(path, `${path}.moved`)
      await mkdir(path)
      await writeFile(join(path, 'mark'), '')
    },
  ],
  // A recreated directory may get the inode number of the one that was removed.
  ['without its mark', (path) => unlink(join(path, 'mark'))],
])('by path, a directory that was %s is lost permanently', async (_, change) => {
  const path = join(await temporaryDirectory(), 'data')
  await mkdir(path)
  const directory = await pinByPath(path)
  await writeFile(join(path, 'mark'), '')
  directory.mark('mark')
  const files = nodeFiles(directory)
  await (await files.open('one', 'create')).close()
  await change(path)
  const before = await contentsOf(path)
  const attempts = [
    () => files.open('two', 'create'),
    () => files.open('one', 'read'),
    () => files.rename('one', 'two'),
    () => files.unlink('one'),
    () => files.syncDirectory(),
    () => files.list(),
  ]
  for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: 'ESTALE' })
  expect(await contentsOf(path)).toEqual(before)
  await rm(path, { recursive: true, force: true })
  await rename(`${path}.moved`, path).catch(() => mkdir(path))
  await writeFile(join(path, 'mark'), '')
  for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: 'ESTALE' })
})

async function openAndMove() {
  const path = join(await temporaryDirectory(), 'data')
  const moved = `${path}.moved`
  const owner = await openDirectory(path, OPTIONS, { clock: systemClock, onLogChanged: () => {} })
  await rename(path, moved)
  return { path, moved, owner }
}

function put(session: StorageSession, key: string): Promise<void> {
  const value = { text: 'x'.repeat(1000) }
  return session.commit([{ kind: 'put', collection: 'settings', key, value, expect: null }])
}

async function putDocuments(session: StorageSession, prefix: string, count: number): Promise<void> {
  for (const key of keysOf(prefix, count)) await put(session, key)
}

function keysOf(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`).sort()
}

async function storedKeys(path: string): Promise<string[]> {
  const session = await openDirectory(path, OPTIONS, { clock: systemClock, onLogChanged: () => {} })
  const documents = await session.list('settings', { prefix: '', after: '', limit: 1000 })
  await session.close()
  return documents.map(({ key }) => key)
}

async function contentsOf(path: string): Promise<string[]> {
  return readdir(path).catch(() => [])
}
