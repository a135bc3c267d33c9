import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { block, FAR, LogWriter, NOW, WHOLE_LOG } from '../../adapters/conformance/log-writer.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { StorageSession, StoredBlock } from '../../src/storage/contract.ts'

describe('memory conforms to the storage contract', () => {
  const suite = conformanceSuite({
    manifest: memory().manifest,
    make: async () => ({ storage: memory(), dispose: async () => {} }),
    keepsDataWhenClosed: true,
  })
  for (const { title, skip, run } of suite) {
    if (skip !== undefined) test.skip(`${title} (${skip})`)
    else test(title, run)
  }

  test('skips only the cases of other storages', () => {
    const skipped = suite.filter(({ skip }) => skip !== undefined)
    expect(skipped.map(({ skip }) => skip)).toEqual([
      'the storage may return memory that it keeps',
      'the storage is shared',
    ])
  })
})

describe('memory', () => {
  test('two storages share nothing', async () => {
    const [first, second] = [await open(), await open()]
    await first.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1 }])
    expect(await second.get('streams', 'a')).toBeUndefined()
  })

  test('does not retain the byte arrays that it is given', async () => {
    const session = await open()
    const writer = await LogWriter.create(session, 'a')
    const request = writer.request()
    const bytes = Buffer.from(request.block.data)
    await session.append({ ...request, block: { ...request.block, data: bytes } })
    bytes.fill(0)
    const [stored] = await session.read('a', WHOLE_LOG)
    expect(stored).toEqual(request.block)
  })

  test('keeps small blocks in shared memory without copying them', async () => {
    const session = await open()
    const writer = await LogWriter.create(session, 'a')
    const appended: StoredBlock[] = []
    for (let i = 0; i < 100; i++) appended.push(await writer.append({ bodyBytes: 1_000 }))
    const stored = await session.read('a', WHOLE_LOG)
    expect(stored).toEqual(appended)
    expect(stored.every(({ data }, i) => data.buffer === appended[i]!.data.buffer)).toBe(true)
    expect(new Set(stored.map(({ data }) => data.buffer)).size).toBeLessThan(20)
  })

  test('retains little more than the records of a log when others are deleted', async () => {
    const session = await open()
    const logIds = Array.from({ length: 60 }, (_, i) => `log-${i}`)
    const writers = await Promise.all(logIds.map((logId) => LogWriter.create(session, logId)))
    for (let round = 0; round < 40; round++) {
      for (const writer of writers) await writer.append({ bodyBytes: 60 })
    }
    await session.commit(logIds.slice(1).map((logId) => ({ kind: 'delete-log', logId })))
    const stored = await session.read('log-0', WHOLE_LOG)
    const used = stored.reduce((bytes, { data }) => bytes + data.length, 0)
    const buffers = new Set(stored.map(({ data }) => data.buffer))
    const retained = [...buffers].reduce((bytes, { byteLength }) => bytes + byteLength, 0)
    expect(retained).toBeLessThan(4_096 + 2 * used)
  })

  test('retains little more than the records that a trim leaves', async () => {
    const session = await open()
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 50; i++) await writer.append({ bodyBytes: 1_000, expiresAt: FAR + i })
    const last = await writer.append({ trimPoint: 49 })
    while ((await session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 10 })).more) {}
    const stored = await session.read('a', WHOLE_LOG)
    expect(stored.map(({ firstSeqNum }) => firstSeqNum)).toEqual([49, 50])
    expect(stored[1]).toEqual(last)
    expect(stored.every(({ data }) => data.buffer.byteLength === data.length)).toBe(true)
    await session.reclaim({ now: FAR + 100, trimmedBefore: 0, blocksMax: 10 })
    expect(await session.read('a', WHOLE_LOG)).toEqual([last])
  })

  test('lists pages of 100,000 names that were added in random order', async () => {
    const session = await open()
    const count = 100_000
    // 7,919 is prime and does not divide the count, so every number comes once.
    for (let i = 0; i < count; i++) {
      const key = `stream-${String((i * 7919) % count).padStart(6, '0')}`
      await session.commit([{ kind: 'put', collection: 'streams', key, value: i, expect: null }])
    }
    let after = ''
    for (let next = 0; next < count; next += 1000) {
      const page = await session.list('streams', { prefix: 'stream-', after, limit: 1000 })
      expect(page.length).toBe(1000)
      expect(page[0]!.key).toBe(`stream-${String(next).padStart(6, '0')}`)
      after = page.at(-1)!.key
      expect(after).toBe(`stream-${String(next + 999).padStart(6, '0')}`)
    }
    expect(await session.list('streams', { prefix: '', after, limit: 1 })).toEqual([])
  })

  test('appends, reads and frees a log of 300,000 blocks', async () => {
    const session = await open()
    const count = 300_000
    await session.commit([{ kind: 'create-log', logId: 'a', epoch: 1, createdAt: 0 }])
    const { data } = block({ firstSeqNum: 0 })
    for (let i = 0; i < count; i++) {
      await session.append({
        logId: 'a',
        expected: { epoch: 1, seqNum: i, appendId: i === 0 ? '' : `${i - 1}` },
        block: {
          firstSeqNum: i,
          endSeqNum: i + 1,
          firstTimestamp: i,
          lastTimestamp: i,
          meteredBytes: 10,
          expiresAt: i % 2 === 0 ? i : null,
          data,
        },
        head: {
          epoch: 1,
          tail: { seqNum: i + 1, timestamp: i },
          trimPoint: 0,
          fencingToken: '',
          appendId: `${i}`,
          appendedAt: i,
          trims: [],
        },
      })
    }
    for (let seqNum = 0; seqNum < count; seqNum += 1000) {
      const blocks = await session.read('a', { from: { seqNum }, endSeqNum: count, bytesMax: 10_000 })
      expect(blocks.length).toBe(1000)
      expect(blocks[0]!.firstSeqNum).toBe(seqNum)
      const [block] = await session.read('a', { from: { timestamp: seqNum }, endSeqNum: count, bytesMax: 1 })
      expect(block!.firstSeqNum).toBe(seqNum)
    }
    while ((await session.reclaim({ now: count, trimmedBefore: 0, blocksMax: 10_000 })).more) {}
    const remaining = await session.read('a', WHOLE_LOG)
    expect(remaining.length).toBe(count / 2)
    expect(remaining.every(({ firstSeqNum }) => firstSeqNum % 2 === 1)).toBe(true)
  })

  test('announces a change once for all appends of one turn', async () => {
    const storage = memory()
    const announced: string[] = []
    await storage.open({ clock: systemClock, onLogChanged: (logId) => announced.push(logId) })
    const author = await storage.open({ clock: systemClock, onLogChanged: () => announced.push('own') })
    const writer = await LogWriter.create(author, 'a')
    expect(announced).toEqual(['a'])
    await Promise.all([writer.append(), writer.append(), writer.append()])
    expect(announced).toEqual(['a', 'a'])
  })
})

function open(): Promise<StorageSession> {
  return memory().open({ clock: systemClock, onLogChanged: () => {} })
}
