import { readdirSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  filesystem,
  type VerifyProgress,
  verifyDirectory,
} from '../../../adapters/storage/filesystem/index.ts'
import { nodeFiles } from '../../../adapters/storage/filesystem/node-files.ts'
import { openFiles } from '../../../adapters/storage/filesystem/open-files.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open } from '../../../src/index.ts'
import { temporaryDirectory } from './directories.ts'

test('changes nothing of what is there, left over or not, and gives the directory up', async () => {
  const directory = await written()
  for (const name of ['journal-0000000099.tmp', 'segment-0000000098', 'notes.txt']) {
    await writeFile(join(directory, name), 'left over')
  }
  const before = await contentsOf(directory)
  const report = await verifyDirectory(directory)
  expect(report).toMatchObject({
    problems: [],
    notes: [
      { file: 'journal-0000000099.tmp', note: 'a file that was not finished' },
      { file: 'segment-0000000098', note: 'it is not wanted: nothing refers to it' },
    ],
    logs: 1,
    blocks: 1,
    records: 2,
  })
  expect(await contentsOf(directory)).toEqual(before)
  const hw = await open({ storage: filesystem(directory) })
  await hw.close()
})

test('a directory that is open is refused as an opening is', async () => {
  const directory = await written()
  const hw = await open({ storage: filesystem(directory) })
  await expect(verifyDirectory(directory)).rejects.toMatchObject({ kind: 'blocked' })
  await hw.close()
  await expect(verifyDirectory(directory)).resolves.toMatchObject({ problemCount: 0 })
})

test('the directory has an owner as long as it is read', async () => {
  const directory = await rolled()
  const owners: boolean[] = []
  await verifyDirectory(directory, {
    onProgress: () => owners.push(readdirSync(directory).some((name) => /^owner-[^.]+$/.test(name))),
  })
  expect(new Set(owners)).toEqual(new Set([true]))
})

test.each<[string, (path: string) => Promise<unknown>, RegExp]>([
  ['missing', async () => {}, /there is no directory .*none$/],
  ['a file', (path) => writeFile(path, ''), /none is no directory$/],
  ['empty', (path) => mkdir(path), /none holds nothing that this storage wrote$/],
  [
    'of somebody else',
    async (path) => {
      await mkdir(path)
      await writeFile(join(path, 'journal.txt'), '')
    },
    /none holds nothing that this storage wrote$/,
  ],
])('what is %s is refused, and nothing is made', async (_, make, message) => {
  const parent = await temporaryDirectory()
  const path = join(parent, 'none')
  await make(path)
  const before = await contentsOf(parent)
  const failure = verifyDirectory(path)
  await expect(failure).rejects.toThrow(message)
  await expect(failure).rejects.toMatchObject({ kind: 'io' })
  expect(await contentsOf(parent)).toEqual(before)
})

test('tells how far it is, up to all of it', async () => {
  const directory = await rolled()
  const told: VerifyProgress[] = []
  const { bytes } = await verifyDirectory(directory, { onProgress: (progress) => told.push(progress) })
  const dones = told.map(({ done }) => done)
  expect(dones).toEqual(dones.toSorted((a, b) => a - b))
  expect(told.at(-1)).toMatchObject({ done: bytes, total: bytes })
  expect(new Set(told.map(({ total }) => total))).toEqual(new Set([bytes]))
  const kinds = ['checkpoint', 'journal', 'segment']
  for (const kind of kinds) expect(told.some(({ file }) => file.startsWith(kind))).toBe(true)
})

test.each([0, 1, 5, 12])(
  'stops when it is told to, after %i steps, and gives the directory up',
  async (steps) => {
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
  },
)

test('a file that cannot be read is a problem of its own', async () => {
  const directory = await rolled()
  const segment = (await readdir(directory)).find((name) => name.startsWith('segment'))!
  await rm(join(directory, segment))
  await mkdir(join(directory, segment))
  const { problems, blocks } = await verifyDirectory(directory)
  expect(problems).toMatchObject([{ file: segment, problem: expect.stringContaining('EISDIR') }])
  expect(blocks).toBeGreaterThan(0)
})

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
  const session = await openFiles(
    nodeFiles(directory),
    { durability: 'sync', rollBytes: 200_000 },
    async () => {},
  )
  const hw = await open({
    storage: {
      manifest: { name: 'filesystem', durability: 'power-loss', shared: false, notifications: 'none' },
      open: async () => session,
    },
    clock: virtualClock(),
  })
  const hasCheckpoint = async () => (await readdir(directory)).some((name) => name.startsWith('checkpoint'))
  while (!(await hasCheckpoint()))
    await hw
      .basin('my-app')
      .stream('a')
      .append(['x'.repeat(50_000)])
  await hw.basin('my-app').stream('a').append(['last'])
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
