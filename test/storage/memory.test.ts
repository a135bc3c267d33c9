import { describe, expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { systemClock } from '../../src/engine/system-clock.ts'
import { block } from '../../src/storage/conformance/blocks.ts'
import { conformanceSuite } from '../../src/storage/conformance/index.ts'
import { LogWriter, WHOLE_LOG } from '../../src/storage/conformance/log-writer.ts'
import type { StorageSession } from '../../src/storage/contract.ts'

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

  test('nothing is skipped but what only exclusive storages do', () => {
    const skipped = suite.filter(({ skip }) => skip !== undefined)
    expect(skipped.map(({ skip }) => skip)).toEqual(['the storage is shared'])
  })
})

describe('memory', () => {
  test('two storages share nothing', async () => {
    const [one, other] = [await open(), await open()]
    await one.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1 }])
    expect(await other.get('streams', 'a')).toBeUndefined()
  })

  test('keeps no hold on the bytes it is given', async () => {
    const session = await open()
    const writer = await LogWriter.create(session, 'a')
    const request = writer.request()
    const bytes = Buffer.from(request.block.data)
    await session.append({ ...request, block: { ...request.block, data: bytes } })
    bytes.fill(0)
    const [stored] = await session.read('a', WHOLE_LOG)
    expect(stored).toEqual(request.block)
  })

  test('lists pages of 100,000 names that came in random order', async () => {
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

  test('takes, reads and frees a log of 300,000 blocks', async () => {
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
      const [one] = await session.read('a', { from: { timestamp: seqNum }, endSeqNum: count, bytesMax: 1 })
      expect(one!.firstSeqNum).toBe(seqNum)
    }
    while ((await session.reclaim({ now: count, trimmedBefore: 0, blocksMax: 10_000 })).more) {}
    const left = await session.read('a', WHOLE_LOG)
    expect(left.length).toBe(count / 2)
    expect(left.every(({ firstSeqNum }) => firstSeqNum % 2 === 1)).toBe(true)
  })

  test('tells a change once for all appends of one turn', async () => {
    const storage = memory()
    const told: string[] = []
    await storage.open({ clock: systemClock, onLogChanged: (logId) => told.push(logId) })
    const author = await storage.open({ clock: systemClock, onLogChanged: () => told.push('own') })
    const writer = await LogWriter.create(author, 'a')
    expect(told).toEqual(['a'])
    await Promise.all([writer.append(), writer.append(), writer.append()])
    expect(told).toEqual(['a', 'a'])
  })
})

function open(): Promise<StorageSession> {
  return memory().open({ clock: systemClock, onLogChanged: () => {} })
}
