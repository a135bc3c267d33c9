import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  type DirectoryProgress,
  filesystem,
  verifyDirectory,
} from '../../../adapters/storage/filesystem/index.ts'
import { nodeFiles } from '../../../adapters/storage/media/files.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open } from '../../../src/index.ts'
import { bundleProgram, Child } from '../../support/child-process.ts'
import { temporaryDirectory } from './directories.ts'
import { openFiles } from './open-files.ts'

/** Why a test does not run. */
const noUsers = process.platform === 'win32' ? ' (skipped: Windows has other permissions)' : ''

test('changes no files, not even leftovers, and releases the directory', { tags: ['slow'] }, async () => {
  const directory = await written()
  for (const name of ['journal-0000000099.tmp', 'segment-0000000098', 'notes.txt']) {
    await writeFile(join(directory, name), 'left over')
  }
  const before = await contentsOf(directory)
  const report = await verifyDirectory(directory)
  expect(report).toMatchObject({
    problems: [],
    notes: [{ file: 'segment-0000000098', note: 'unused: nothing refers to it' }],
    logs: 1,
    blocks: 1,
    records: 2,
  })
  expect(await contentsOf(directory)).toEqual(before)
  const hw = await open({ storage: filesystem(directory) })
  await hw.close()
})

test.runIf(process.platform === 'linux' /* others have no /proc */)(
  'closes the files that it has read',
  async () => {
    const directory = await written()
    await verifyDirectory(directory)
    const descriptors = await readdir('/proc/self/fd')
    const paths = await Promise.all(descriptors.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
    expect(paths.filter((path) => path.startsWith(directory))).toEqual([])
  },
)

test('rejects a directory that is open elsewhere', async () => {
  const directory = await written()
  const hw = await open({ storage: filesystem(directory) })
  await expect(verifyDirectory(directory)).rejects.toMatchObject({ kind: 'blocked' })
  await hw.close()
  await expect(verifyDirectory(directory)).resolves.toMatchObject({ problems: [] })
})

test.each<[string, (path: string) => Promise<unknown>, RegExp]>([
  ['missing', async () => {}, /directory .*none does not exist$/],
  ['a file', (path) => writeFile(path, ''), /none is not a directory$/],
  [
    'a directory with foreign files',
    async (path) => {
      await mkdir(path)
      await writeFile(join(path, 'journal.txt'), '')
    },
    /none contains no files of this storage$/,
  ],
])('rejects a path that is %s, and creates nothing', async (_, make, message) => {
  const parent = await temporaryDirectory()
  const path = join(parent, 'none')
  await make(path)
  const before = await contentsOf(parent)
  const failure = verifyDirectory(path)
  await expect(failure).rejects.toThrow(message)
  await expect(failure).rejects.toMatchObject({ kind: 'io' })
  expect(await contentsOf(parent)).toEqual(before)
})

test('reports no files for a directory that a killed process had open', { tags: ['slow'] }, async () => {
  const base = await temporaryDirectory()
  const directory = join(base, 'data')
  const holder = new Child(await bundleProgram(new URL('./children/holder.ts', import.meta.url), base), [
    directory,
  ])
  await holder.printed(1)
  await holder.kill()
  expect(await readdir(directory)).not.toEqual([])
  expect(await verifyDirectory(directory)).toMatchObject({ files: 0, problems: [] })
  expect(await readdir(directory)).toEqual([])
})

test.skipIf(noUsers !== '')(
  `verifies a read-only directory, unless it is open${noUsers}`,
  { tags: ['slow'] },
  async () => {
    const base = await temporaryDirectory()
    await chmod(base, 0o755)
    const program = await bundleProgram(new URL('./children/verifier.ts', import.meta.url), base)
    const directory = await written()
    const makeReadOnly = async () => {
      for (const name of await readdir(directory)) await chmod(join(directory, name), 0o644)
      await chmod(directory, 0o555)
    }
    await makeReadOnly()
    expect(verifiedByOther(program, directory)).toBe('1 files, 0 problems\n')
    await chmod(directory, 0o755)
    const hw = await open({ storage: filesystem(directory) })
    await makeReadOnly()
    expect(verifiedByOther(program, directory)).toMatch(/^blocked: /)
    await chmod(directory, 0o755)
    await hw.close()
  },
)

test('reports its progress up to the total', async () => {
  const directory = await rolled()
  const progress: DirectoryProgress[] = []
  const { bytes } = await verifyDirectory(directory, { onProgress: (step) => progress.push(step) })
  const doneBytes = progress.map(({ done }) => done)
  expect(doneBytes).toEqual(doneBytes.toSorted((a, b) => a - b))
  expect(progress.at(-1)).toMatchObject({ done: bytes, total: bytes })
  expect(new Set(progress.map(({ total }) => total))).toEqual(new Set([bytes]))
  const kinds = ['checkpoint', 'journal', 'segment']
  for (const kind of kinds) expect(progress.some(({ file }) => file.startsWith(kind))).toBe(true)
})

test.each([0, 1, 3])('stops at its signal after %i steps, and releases the directory', async (steps) => {
  const directory = await rolled()
  const before = await contentsOf(directory)
  const stop = new AbortController()
  const reason = new Error('enough')
  let step = 0
  if (steps === 0) stop.abort(reason)
  const verifying = verifyDirectory(directory, {
    signal: stop.signal,
    onProgress: () => {
      if (++step === steps) stop.abort(reason)
    },
  })
  await expect(verifying).rejects.toBe(reason)
  expect(step).toBe(steps)
  expect(await contentsOf(directory)).toEqual(before)
})

/** Runs as a user who may not write there: the superuser may write everywhere. */
function verifiedByOther(program: string, directory: string): string {
  const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
  return execFileSync(process.execPath, [program, directory], { encoding: 'utf8', ...user })
}

async function written(): Promise<string> {
  const directory = await temporaryDirectory()
  const hw = await open({ storage: filesystem(directory) })
  await hw.basin('my-app').stream('a').append(['one', 'two'])
  await hw.close()
  return directory
}

/** With files of every kind. */
async function rolled(): Promise<string> {
  const directory = await temporaryDirectory()
  const session = await openFiles(nodeFiles(directory), { durability: 'power-loss', rollBytes: 200_000 })
  const hw = await open({
    storage: {
      manifest: { name: 'filesystem', durability: 'power-loss', shared: false, notifications: 'none' },
      open: async () => session,
    },
    clock: virtualClock(),
  })
  const stream = hw.basin('my-app').stream('a')
  // One that is still being written has a temporary name, and is given up when the storage closes.
  const hasCheckpoint = async () => (await readdir(directory)).some((name) => /^checkpoint-\d+$/.test(name))
  while (!(await hasCheckpoint())) await stream.append('x'.repeat(50_000))
  await stream.append('last')
  await hw.close()
  return directory
}

async function contentsOf(directory: string): Promise<Record<string, string>> {
  const contents: Record<string, string> = {}
  for (const name of (await readdir(directory)).sort()) {
    const path = join(directory, name)
    const { mtimeMs } = await stat(path)
    const isFile = (await stat(path)).isFile()
    contents[name] = isFile ? `${mtimeMs} ${(await readFile(path)).toString('latin1')}` : 'a directory'
  }
  return contents
}
