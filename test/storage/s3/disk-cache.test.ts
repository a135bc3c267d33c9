import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DiskCache } from '../../../adapters/storage/s3/disk-cache.ts'
import { openBucket } from '../../../adapters/storage/s3/open-bucket.ts'
import { type Headwater, open } from '../../../src/index.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { temporaryDirectory } from '../filesystem/directories.ts'
import { FakeS3, locationOf } from './fake-s3.ts'

const part = (number: number, bytes = 1_000) => Buffer.alloc(bytes, number)
const unexpected = () => Promise.reject(new Error('it is read from the bucket'))

it('a part is read from the bucket once, also by other processes', async () => {
  const directory = join(await temporaryDirectory(), 'new', 'cache')
  const cache = await DiskCache.open(directory, 100_000)
  expect(await cache.read('segment-1/0', 1_000, async () => part(1))).toEqual(part(1))
  expect(await cache.read('segment-1/0', 1_000, unexpected)).toEqual(part(1))
  const other = await DiskCache.open(directory, 100_000)
  expect(await other.read('segment-1/0', 1_000, unexpected)).toEqual(part(1))
  expect((await stat(directory)).mode & 0o077).toBe(0)
})

it.each([
  ['cut', (file: Buffer) => file.subarray(0, 500)],
  ['changed', (file: Buffer) => Buffer.concat([file.subarray(0, 500), Buffer.alloc(504)])],
  ['empty', () => Buffer.alloc(0)],
])('a file that is %s is read again and replaced', async (_, damage) => {
  const directory = await temporaryDirectory()
  const cache = await DiskCache.open(directory, 100_000)
  await cache.read('segment-1/0', 1_000, async () => part(1))
  const [name] = (await readdir(directory)) as [string]
  const path = join(directory, name)
  await writeFile(path, damage(await readFile(path)))
  expect(await cache.read('segment-1/0', 1_000, async () => part(1))).toEqual(part(1))
  expect(await cache.read('segment-1/0', 1_000, unexpected)).toEqual(part(1))
})

it('keeps what was read last, up to its limit, and removes no other files', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, 'notes.txt'), 'x'.repeat(50_000))
  const caches = [await DiskCache.open(directory, 20_000), await DiskCache.open(directory, 20_000)]
  for (let i = 0; i < 60; i++) {
    await caches[i % 2]!.read(`${i}`, 1_000, async () => part(i))
    await caches[0]!.read('0', 1_000, async () => part(0))
  }
  const names = (await readdir(directory)).filter((name) => name !== 'notes.txt')
  expect(names.length).toBeGreaterThan(10)
  expect(names.length).toBeLessThanOrEqual(22)
  expect(await caches[1]!.read('0', 1_000, unexpected)).toEqual(part(0))
  expect(await readdir(directory)).toContain('notes.txt')
})

it('a directory that was removed fails no read', async () => {
  const directory = join(await temporaryDirectory(), 'cache')
  const cache = await DiskCache.open(directory, 100_000)
  await rm(directory, { recursive: true })
  expect(await cache.read('1', 1_000, async () => part(1))).toEqual(part(1))
})

it('a storage reads what it has read before an opening from the directory', async () => {
  const s3 = new FakeS3()
  const cacheDirectory = join(await temporaryDirectory(), 'cache')
  const bodies = Array.from({ length: 50 }, (_, i) => `${i}${'x'.repeat(10_000)}`)
  const opened = async (): Promise<Headwater> => {
    const hw = await open({ storage: s3.storage({ cacheDirectory, takeOver: true }) })
    onTestFinished(() => hw.close())
    return hw
  }
  const first = await opened()
  for (const body of bodies) await first.basin('my-app').stream('notes').append(body)
  await first.close()
  const read = async () => {
    const hw = await opened()
    const stream = hw.basin('my-app').stream('notes')
    const before = s3.requests.length
    expect((await stream.read({ seqNum: 0 }).toArray()).map(({ body }) => body)).toEqual(bodies)
    await hw.close()
    return s3.requests.slice(before).filter((request) => request.startsWith('GET chain/')).length
  }
  await read()
  expect(await read()).toBe(0)
  s3.objects.clear()
  expect((await (await opened()).listBasins()).items).toEqual([])
})

describe.each([
  ['in groups', 64_000_000],
  ['in larger objects', 20_000],
])('a bucket and its copy, with records %s,', (_, rollBytes) => {
  it('may share a directory', async () => {
    const [original, copy] = [new FakeS3(), new FakeS3()]
    const cacheDirectory = await temporaryDirectory()
    const opened = (s3: FakeS3) => {
      const options = { cacheDirectory, rollBytes, takeOver: true }
      const storage: Storage = {
        manifest: s3.storage().manifest,
        open: (context) => openBucket(locationOf(s3), options, context),
      }
      return open({ storage })
    }
    const append = async (s3: FakeS3, text: string) => {
      const hw = await opened(s3)
      for (let i = 0; i < 20; i++) await hw.basin('my-app').stream('notes').append(text.repeat(2_000))
      await hw.close()
    }
    const read = async (s3: FakeS3) => {
      const hw = await opened(s3)
      const records = await hw.basin('my-app').stream('notes').read({ seqNum: 0 }).toArray()
      await hw.close()
      return new Set(records.map(({ body }) => String(body)[0]))
    }
    await append(original, '1')
    for (const [key, object] of original.objects) copy.objects.set(key, object)
    await append(original, '2')
    await append(copy, '3')
    expect(await read(original)).toEqual(new Set('12'))
    expect(await read(copy)).toEqual(new Set('13'))
  })
})
