import { copyFile, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest'
import { WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { createHandler } from '../../../adapters/http/index.ts'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { open } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { temporaryDirectory } from './directories.ts'
import { hookedFiles } from './hooked-files.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

let log: MockInstance
beforeEach(() => {
  log = vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterEach(() => log.mockRestore())

type Loss = (directory: string, journal: string) => Promise<void>

const LOSSES: readonly (readonly [string, Loss])[] = [
  ['the directory is removed', (directory) => rm(directory, { recursive: true })],
  ['the directory is moved', (directory) => rename(directory, `${directory}.moved`)],
  [
    'the directory is replaced',
    async (directory) => {
      await rename(directory, `${directory}.moved`)
      await mkdir(directory)
    },
  ],
  ['the journal is removed', (_, journal) => rm(journal)],
  ['the journal is moved away', (_, journal) => rename(journal, `${journal}.moved`)],
  [
    'the journal is replaced by a copy',
    async (_, journal) => {
      await copyFile(journal, `${journal}.copy`)
      await rename(`${journal}.copy`, journal)
    },
  ],
]

describe.each(['power-loss', 'process-crash'] as const)('with durability %s', (durability) => {
  test.each(LOSSES)('no append is acknowledged after %s', { tags: ['slow'] }, async (_, lose) => {
    const directory = join(await temporaryDirectory(), 'data')
    const hw = await open({ storage: filesystem(directory, { durability }) })
    const stream = hw.basin('my-basin').stream('log')
    const onError = vi.fn()
    const handler = createHandler(hw, { auth: 'none', onError })
    const health = async () => (await handler(new Request('http://localhost/health'))).status
    await stream.append('before')
    expect(await health()).toBe(200)
    const [journal] = (await readdir(directory)).filter((name) => name.startsWith('journal'))
    await lose(directory, join(directory, journal!))
    expect(await health()).toBe(503)
    for (let i = 0; i < 3; i++)
      await expect(stream.append('after')).rejects.toMatchObject({ code: 'storage' })
    expect(await health()).toBe(503)
    expect(onError).toHaveBeenCalledOnce()
    expect(log.mock.calls).toEqual([[expect.stringContaining(`${journal} was removed or replaced`)]])
    await hw.close()
  })
})

test('an append is not acknowledged if the journal is removed while it is synced', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  let isArmed = false
  const files = hookedFiles(disk, async (operation) => {
    if (isArmed && operation === 'datasync') await disk.unlink('journal-0000000001')
    if (operation === 'datasync') isArmed = false
  })
  const session = await openSimulated(files, 100_000)
  const writer = await LogWriter.create(session, 'a')
  isArmed = true
  await expect(writer.append()).rejects.toMatchObject({ kind: 'io', nothingWritten: false })
  await session.close()
})

test('a directory that was removed is created by the next opening in the process', async () => {
  const directory = join(await temporaryDirectory(), 'data')
  const old = await open({ storage: filesystem(directory) })
  await old.basin('my-basin').stream('log').append('lost')
  await rm(directory, { recursive: true })
  await expect(old.basin('my-basin').stream('log').append('x')).rejects.toMatchObject({ code: 'storage' })
  const hw = await open({ storage: filesystem(directory) })
  const stream = hw.basin('my-basin').stream('log')
  await stream.append('kept')
  await old.close()
  await hw.close()
  const reopened = await open({ storage: filesystem(directory) })
  const { records } = await reopened.basin('my-basin').stream('log').readBatch({ seqNum: 0 })
  expect(records.map(({ body }) => body)).toEqual(['kept'])
  await reopened.close()
})

test.each<[string, string, (session: StorageSession, writer: LogWriter) => Promise<unknown>]>([
  ['journal', 'was removed or replaced while it was open', (_, writer) => writer.append()],
  ['segment', 'is damaged at offset 0: the file is missing', (session) => session.read('a', WHOLE_LOG)],
])('a missing %s fails the calls that need it', async (kind, problem, call) => {
  const disk = new SimulatedDisk(new Prng(1))
  const first = await openSimulated(disk, 4000)
  const writer = await LogWriter.create(first, 'a')
  for (let i = 0; i < 20; i++) await writer.append({ bodyBytes: 500 })
  await first.close()
  const session = await openSimulated(disk, 100_000)
  const name = disk.names.find((file) => file.startsWith(kind))!
  await disk.unlink(name)
  await expect(call(session, new LogWriter(session, 'a', writer.head))).rejects.toThrow(`${name} ${problem}`)
  await session.close()
})
