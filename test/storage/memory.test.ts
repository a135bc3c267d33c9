import { describe, expect, test } from 'vitest'
import { FAR, NOW, WHOLE_LOG } from '../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../adapters/conformance/log-writer.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { StorageSession } from '../../src/storage/contract.ts'

describe('memory', () => {
  test('two storages share nothing', async () => {
    const [first, second] = [await open(), await open()]
    await first.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1 }])
    expect(await second.get('streams', 'a')).toBeUndefined()
  })

  test('does not keep a large buffer for a block that is a small part of it', async () => {
    const session = await open()
    const writer = await LogWriter.create(session, 'a')
    const request = writer.request()
    const buffer = new Uint8Array(1_000_000)
    const [block] = request.blocks
    buffer.set(block!.data, 1000)
    const data = buffer.subarray(1000, 1000 + block!.data.length)
    await session.append({ ...request, blocks: [{ ...block!, data }] })
    const [stored] = await session.read('a', WHOLE_LOG)
    expect(stored).toEqual(block)
    expect(stored!.data.buffer.byteLength).toBeLessThan(10_000)
  })

  test('frees what a trim and an expiry leave, in any order of expiries', async () => {
    const session = await open()
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 50; i++) await writer.append({ bodyBytes: 1_000, expiresAt: FAR - i })
    const last = await writer.append({ trimPoint: 49 })
    while ((await session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 10 })).more) {}
    const stored = await session.read('a', WHOLE_LOG)
    expect(stored.map(({ firstSeqNum }) => firstSeqNum)).toEqual([49, 50])
    expect(stored[1]).toEqual(last)
    const { more, logIds } = await session.reclaim({ now: FAR, trimmedBefore: 0, blocksMax: 10 })
    expect([more, logIds]).toEqual([false, ['a']])
    expect(await session.read('a', WHOLE_LOG)).toEqual([last])
  })

  test('lists pages of 5,000 names that were added in random order', async () => {
    const session = await open()
    const count = 5_000
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
