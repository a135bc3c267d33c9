import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { link, lstat, mkdir, readdir, readFile, symlink, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { nodeFiles } from '../../../adapters/storage/media/node-files.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { temporaryDirectory } from './directories.ts'

const hasPipes = process.platform !== 'win32'
/** Why a test does not run. */
const pipesOnly = hasPipes ? '' : ' (skipped: Windows has no pipes with names of files)'

test.runIf(hasPipes).each(['segment-0000000009', 'journal-0000000001', 'checkpoint-0000000001'])(
  `rejects a pipe with the name %s, without waiting for a writer${pipesOnly}`,
  { tags: ['slow'] },
  async (name) => {
    const directory = await temporaryDirectory()
    execFileSync('mkfifo', [join(directory, name)])
    await withBlockedReaders(join(directory, name), async () => {
      const opening = nodeFiles(directory).open(name, 'read')
      await expect(opening).rejects.toThrow(`EINVAL: not a regular file, '${join(directory, name)}'`)
    })
  },
)

test.runIf(hasPipes)(
  `a pipe with the name of a journal makes opening fail${pipesOnly}`,
  { tags: ['slow'] },
  async () => {
    const directory = await temporaryDirectory()
    const name = 'journal-0000000001'
    execFileSync('mkfifo', [join(directory, name)])
    await withBlockedReaders(join(directory, name), async () => {
      const opening = filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
      await expect(opening).rejects.toMatchObject({ kind: 'io', message: expect.stringContaining(name) })
    })
  },
)

/** A reader that waits for a writer would keep the process from ending when the test fails. */
async function withBlockedReaders(pipe: string, work: () => Promise<void>): Promise<void> {
  const wake = setTimeout(() => closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)), 3000)
  try {
    await work()
  } finally {
    clearTimeout(wake)
  }
}

const noModes = process.platform === 'win32' ? ' (skipped: Windows has other permissions)' : ''

test.runIf(noModes === '')(`a new file replaces a symbolic link and never follows it${noModes}`, async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  await mkdir(directory)
  await writeFile(join(base, 'target'), 'kept')
  await link(join(base, 'target'), join(base, 'hard'))
  const files = nodeFiles(directory)
  for (const make of [
    () => symlink(join(base, 'target'), join(directory, 'one')),
    () => symlink(join(base, 'none'), join(directory, 'one')),
    () => link(join(base, 'hard'), join(directory, 'one')),
    () => writeFile(join(directory, 'one'), 'older'),
  ]) {
    await make()
    const file = await files.open('one', 'create')
    await file.write(Buffer.from('new'), 0)
    await file.close()
    expect(await readFile(join(directory, 'one'), 'utf8')).toBe('new')
    expect((await lstat(join(directory, 'one'))).isFile()).toBe(true)
    await unlink(join(directory, 'one'))
  }
  expect(await readFile(join(base, 'target'), 'utf8')).toBe('kept')
  expect(await readdir(base)).not.toContain('none')
})

test.runIf(noModes === '')(`directories and files are accessible to their owner only${noModes}`, async () => {
  const directory = join(await temporaryDirectory(), 'parent', 'data')
  const session = await filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
  await session.commit([{ kind: 'put', collection: 'settings', key: 'a', value: 1 }])
  const modeOf = async (path: string) => (await lstat(path)).mode & 0o777
  expect(await modeOf(directory)).toBe(0o700)
  const names = await readdir(directory)
  expect(names.map((name) => name.split('-')[0]).sort()).toEqual(['journal', 'lock'])
  for (const name of names) expect(await modeOf(join(directory, name))).toBe(0o600)
  await session.close()
})
