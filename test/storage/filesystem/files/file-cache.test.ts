import { closeSync, fstatSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { NewFile } from '../../../../adapters/storage/filesystem/files/new-file.ts'
import { nodeFiles } from '../../../../adapters/storage/filesystem/files/node-files.ts'
import { RESERVE_NAME } from '../../../../adapters/storage/filesystem/files/reserve.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { temporaryDirectory } from '../directories.ts'
import { hookedFiles, systemError } from '../hooked-files.ts'
import { openFiles } from '../open-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'

test('a new file that cannot be renamed closes its descriptor only once', async () => {
  const directory = await temporaryDirectory()
  const other = join(directory, 'other')
  writeFileSync(other, 'x')
  const descriptors: number[] = []
  const files = hookedFiles(nodeFiles(directory), (operation, name) => {
    if (operation !== 'rename' || !/^(segment|checkpoint)/.test(name) || descriptors.length > 0) return
    descriptors.push(openSync(other, 'r'), openSync(other, 'r'))
    throw systemError('EIO')
  })
  const session = await openFiles(files, { durability: 'power-loss', rollBytes: 3000 }, async () => {})
  const writer = await LogWriter.create(session, 'a')
  while (descriptors.length === 0) await writer.append({ bodyBytes: 200 })
  await session.close()
  for (const descriptor of descriptors) {
    expect(() => fstatSync(descriptor)).not.toThrow()
    closeSync(descriptor)
  }
})

test('closing a file twice closes its descriptor once', async () => {
  const directory = await temporaryDirectory()
  const file = await nodeFiles(directory).open('one', 'create')
  await file.close()
  const descriptor = openSync(join(directory, 'one'), 'r')
  await file.close()
  expect(() => fstatSync(descriptor)).not.toThrow()
  closeSync(descriptor)
})

test.each(['rename', 'close'])('a new file is closed once when its %s fails', async (failing) => {
  let closed = 0
  const files = hookedFiles(new SimulatedDisk(new Prng(1)), (operation) => {
    if (operation === 'close') closed++
    if (operation === failing) throw systemError('EIO')
  })
  const file = await NewFile.create(files, 'segment', 1)
  await expect(file.finish()).rejects.toThrow('EIO')
  await file.abandon()
  expect(closed).toBe(1)
})

test('close completes although a file cannot be closed, and rejects', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const opened: string[] = []
  const closed: string[] = []
  const files = hookedFiles(disk, (operation, name) => {
    if (name === RESERVE_NAME) return
    if (operation === 'open') opened.push(name)
    if (operation === 'close') closed.push(name)
    if (operation === 'close' && failing && name.startsWith('journal')) throw systemError('EIO')
  })
  let failing = false
  let released = false
  const session = await openFiles(files, { durability: 'power-loss', rollBytes: 3000 }, async () => {
    released = true
  })
  const writer = await LogWriter.create(session, 'a')
  for (let i = 0; i < 40; i++) await writer.append({ bodyBytes: 200 })
  await session.read('a', WHOLE_LOG)
  failing = true
  await expect(session.close()).rejects.toThrow('EIO')
  expect(released).toBe(true)
  expect(closed.toSorted()).toEqual(opened.toSorted())
})
