import { describe, expect, test } from 'vitest'
import { Prng } from '../../../../src/runtime/prng.ts'
import { hookedFiles } from '../hooked-files.ts'
import { openSimulated } from '../workload.ts'
import { CHECKPOINT, diskWith, filledDisk, keyOf, ROLL_BYTES, STREAMS } from './filled-disk.ts'

/** Opens a filled disk. `reads` returns how often its checkpoint was read since. */
async function openCounting() {
  let reads = 0
  const files = hookedFiles(await filledDisk(), (operation, name) => {
    if (operation === 'read' && name === CHECKPOINT) reads++
  })
  const session = await openSimulated(files, ROLL_BYTES)
  const before = reads
  return { session, reads: () => reads - before }
}

describe('a checkpoint of many documents and logs', () => {
  test('is not read by an opening, and in small parts by the calls that need it', async () => {
    const disk = await filledDisk()
    let bytes = 0
    const session = await openSimulated(
      { ...hookedFiles(disk, () => {}), open: (name, mode) => counted(name, mode) },
      ROLL_BYTES,
    )
    async function counted(name: string, mode: 'create' | 'read' | 'update') {
      const file = await disk.open(name, mode)
      const read = async (buffer: Uint8Array, position: number) => {
        const count = await file.read(buffer, position)
        if (name === CHECKPOINT) bytes += count
        return count
      }
      const others = { size: () => file.size(), close: () => file.close(), datasync: () => file.datasync() }
      return {
        ...others,
        read,
        write: (data: Uint8Array, position: number) => file.write(data, position),
        truncate: (length: number) => file.truncate(length),
        isLinked: () => file.isLinked(),
        isNamed: (named: string) => file.isNamed(named),
      }
    }
    const { length } = disk.contentOf(CHECKPOINT)
    expect(length).toBeGreaterThan(4_000_000)
    const before = bytes
    expect(before).toBeLessThan(0.6 * length)
    expect(await session.get('settings', keyOf(7_777))).toMatchObject({ value: '7777', version: 7_777 })
    expect((await session.head('log-7777'))?.appendedAt).toBe(7_777)
    expect(await session.head('log-0')).toBeUndefined()
    const page = await session.list('settings', { prefix: 'k01', after: keyOf(12_345), limit: 1_000 })
    expect(page.map(({ key }) => key)).toEqual(Array.from({ length: 1_000 }, (_, i) => keyOf(12_346 + i)))
    expect(bytes - before).toBeLessThan(100_000)
    await session.close()
  })

  test('is read once for the calls that need the same part at the same time', async () => {
    const { session, reads } = await openCounting()
    const keys = Array.from({ length: 1_000 }, (_, i) => keyOf(i + 1))
    await session.commit(keys.map((key) => ({ kind: 'put', collection: 'settings', key, value: 1 })))
    expect(reads()).toBeLessThan(10)
    await session.close()
  })

  test('returns the right document and log to concurrent calls in random order', async () => {
    const session = await openSimulated(await filledDisk(), ROLL_BYTES)
    const prng = new Prng(3)
    const numbers = Array.from({ length: 2_000 }, () => 1 + prng.below(STREAMS))
    const found = await Promise.all(
      numbers.map(async (i) => {
        const [document, head] = await Promise.all([
          session.get('settings', keyOf(i)),
          session.head(`log-${i}`),
        ])
        return [document?.key, document?.value, document?.version, head?.appendedAt]
      }),
    )
    expect(found).toEqual(numbers.map((i) => [keyOf(i), `${i}`, i, i]))
    expect(await session.get('settings', `${keyOf(7)}-`)).toBeUndefined()
    expect(await session.get('settings', 'a')).toBeUndefined()
    expect(await session.get('settings', 'z')).toBeUndefined()
    await session.close()
  })

  test('is read once or twice per page by concurrent calls that need the same pages', async () => {
    const { session, reads } = await openCounting()
    const prng = new Prng(4)
    const keys = Array.from({ length: 1_000 }, () => keyOf(50_000 + prng.below(500)))
    const found = await Promise.all(keys.map((key) => session.get('settings', key)))
    expect(found.map((document) => document?.key)).toEqual(keys)
    expect(reads()).toBeLessThan(20)
    await session.close()
  })

  test('is read once or twice per page by look-ups of neighbouring keys', async () => {
    const { session, reads } = await openCounting()
    for (let i = 1; i <= 2_000; i++) {
      expect((await session.get('settings', keyOf(i)))?.version).toBe(i)
    }
    expect(reads()).toBeLessThan(20)
    await session.close()
  })

  test('is read in a few calls of the system by a list', async () => {
    const { session, reads } = await openCounting()
    const list = (i: number) => session.list('settings', { prefix: 'k', after: keyOf(i), limit: 2_000 })
    const pages = await Promise.all([list(5_000), list(5_000)])
    for (const page of pages) {
      expect(page.map(({ value }) => value)).toEqual(Array.from({ length: 2_000 }, (_, i) => `${5_001 + i}`))
    }
    expect(reads()).toBeLessThan(4)
    const many = await session.list('settings', { prefix: 'k', after: keyOf(20_000), limit: 50_000 })
    expect(many.map(({ key }) => key)).toEqual(Array.from({ length: 50_000 }, (_, i) => keyOf(20_001 + i)))
    await session.close()
  })

  test('fails a list that needs a damaged part, but not one that ends before it', async () => {
    const disk = await filledDisk()
    const content = Buffer.from(disk.contentOf(CHECKPOINT))
    const place = content.indexOf(keyOf(7_777))
    content[place]! ^= 1
    const session = await openSimulated(diskWith(content, disk), ROLL_BYTES)
    const list = (after: number, limit: number) =>
      session.list('settings', { prefix: 'k', after: keyOf(after), limit })
    await expect(list(7_000, 1_000)).rejects.toMatchObject({
      kind: 'corrupt',
      message: expect.stringContaining(CHECKPOINT),
    })
    expect(await list(5_000, 2_000)).toHaveLength(2_000)
    expect(await list(8_500, 1_000)).toHaveLength(1_000)
    await session.close()
  })

  test('fails only the calls that need a damaged part', async () => {
    const disk = await filledDisk()
    const content = Buffer.from(disk.contentOf(CHECKPOINT))
    content[200_000]! ^= 1
    const session = await openSimulated(diskWith(content, disk), ROLL_BYTES)
    const failures: number[] = []
    for (let i = 1; i <= STREAMS; i += 50) {
      const error = await session.get('settings', keyOf(i)).then(
        () => undefined,
        (failure: unknown) => failure,
      )
      if (error === undefined) continue
      expect(error).toMatchObject({ kind: 'corrupt', message: expect.stringContaining(CHECKPOINT) })
      failures.push(i)
    }
    expect(failures.length).toBeGreaterThan(0)
    expect(failures.length).toBeLessThan(20)
    const damagedKey = keyOf(failures[0]!)
    const put = { kind: 'put', collection: 'settings', key: damagedKey, value: 1, expect: null } as const
    await expect(session.commit([put])).rejects.toMatchObject({ kind: 'corrupt', nothingWritten: true })
    await session.commit([{ ...put, key: 'other' }])
    await session.close()
  })
})
