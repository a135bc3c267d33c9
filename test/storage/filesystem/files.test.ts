import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { nodeFiles } from '../../../adapters/storage/media/files.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { temporaryDirectory } from './directories.ts'

const noModes = process.platform === 'win32' ? ' (skipped: Windows has other permissions)' : ''

test.runIf(noModes === '')(`a new file never replaces or follows another one${noModes}`, async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  await mkdir(directory)
  await writeFile(join(base, 'target'), 'kept')
  await symlink(join(base, 'target'), join(directory, 'one'))
  await symlink(join(base, 'none'), join(directory, 'two'))
  await writeFile(join(directory, 'three'), 'kept')
  for (const name of ['one', 'two', 'three']) {
    await expect(nodeFiles(directory).open(name, 'create')).rejects.toMatchObject({ code: 'EEXIST' })
  }
  expect(await readFile(join(base, 'target'), 'utf8')).toBe('kept')
  expect(await readFile(join(directory, 'three'), 'utf8')).toBe('kept')
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
