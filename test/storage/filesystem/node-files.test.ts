import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { nodeFiles } from '../../../adapters/storage/filesystem/node-files.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { temporaryDirectory } from './directories.ts'

const hasPipes = process.platform !== 'win32'
/** Why a test does not run. */
const pipesOnly = hasPipes ? '' : ' (skipped: Windows has no pipes with names of files)'

test.runIf(hasPipes).each(['segment-0000000009', 'journal-0000000001', 'checkpoint-0000000001'])(
  `a pipe with the name %s is no file, and nobody waits for who would write to it${pipesOnly}`,
  async (name) => {
    const directory = await temporaryDirectory()
    execFileSync('mkfifo', [join(directory, name)])
    await wakingReaders(join(directory, name), async () => {
      const opening = nodeFiles(directory).open(name, 'read')
      await expect(opening).rejects.toThrow(`EINVAL: not a regular file, open '${join(directory, name)}'`)
    })
  },
)

test.runIf(hasPipes)(`a pipe with the name of a journal fails the opening${pipesOnly}`, async () => {
  const directory = await temporaryDirectory()
  const name = 'journal-0000000001'
  execFileSync('mkfifo', [join(directory, name)])
  await wakingReaders(join(directory, name), async () => {
    const opening = filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
    await expect(opening).rejects.toMatchObject({ kind: 'io', message: expect.stringContaining(name) })
  })
})

test('a directory with the name of a file is no file', async () => {
  const directory = await temporaryDirectory()
  await mkdir(join(directory, 'segment-0000000009'))
  await expect(nodeFiles(directory).open('segment-0000000009', 'read')).rejects.toMatchObject({
    code: 'EISDIR',
  })
})

/** A reader that waits for a writer would keep the process from ending when the test fails. */
async function wakingReaders(pipe: string, work: () => Promise<void>): Promise<void> {
  const wake = setTimeout(() => closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)), 3000)
  try {
    await work()
  } finally {
    clearTimeout(wake)
  }
}
