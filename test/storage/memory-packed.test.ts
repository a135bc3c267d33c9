import { queryObjects } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { LogWriter, NOW, WHOLE_LOG } from '../../adapters/conformance/log-writer.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { MemoryLog } from '../../adapters/storage/memory/log.ts'
import { memoryStorage } from '../../adapters/storage/memory/memory-storage.ts'
import { PackedDocuments } from '../../adapters/storage/memory/packed-documents.ts'
import { PackedTable } from '../../adapters/storage/memory/packed-table.ts'
import { SlotOrder } from '../../adapters/storage/memory/slot-order.ts'
import { SYSTEM_STREAM_CONFIG } from '../../src/core/config.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { idFrom, secureRandom } from '../../src/runtime/ids.ts'
import type { Storage, StorageSession } from '../../src/storage/contract.ts'
import { streamKey } from '../../src/storage/documents.ts'

describe('memory conforms to the storage contract while all documents and all idle logs are packed', () => {
  const suite = conformanceSuite({
    manifest: memory().manifest,
    make: async () => ({ storage: packing(memoryStorage(0)), dispose: async () => {} }),
    keepsDataWhenClosed: true,
  })
  for (const { title, skip, run } of suite) {
    if (skip !== undefined) test.skip(`${title} (${skip})`)
    else test(title, run)
  }
})

const DECOYS = ['decoy-1', 'decoy-2', 'decoy-3']

/** Uses other logs before each call, so that the log of the call was packed before. */
function packing(storage: Storage): Storage {
  return {
    manifest: storage.manifest,
    async open(context) {
      const session = await storage.open(context)
      if ((await session.head(DECOYS[0]!)) === undefined) {
        const decoys = DECOYS.map((logId) => ({ kind: 'create-log', logId, epoch: 1, createdAt: 0 }) as const)
        await session.commit(decoys)
      }
      return new Proxy(session, {
        get(target, name) {
          const member = Reflect.get(target, name)
          if (typeof member !== 'function') return member
          return (...args: unknown[]) => {
            // They fail when the session is closed.
            for (const logId of DECOYS) target.head(logId).catch(() => {})
            return member.apply(target, args)
          }
        },
      })
    },
  }
}

describe('packed logs of the memory storage', () => {
  test('10,000 idle logs and documents keep a bounded number of objects', async () => {
    const session = await open(memoryStorage(100))
    const before = queryObjects(MemoryLog, { format: 'count' })
    for (let i = 0; i < 10_000; i++) await fill(session, `log-${i}`)
    expect(queryObjects(MemoryLog, { format: 'count' }) - before).toBeLessThanOrEqual(101)
    expect(await session.read('log-0', WHOLE_LOG)).toHaveLength(1)
    await session.close()
  })

  test('logs that are used in turn keep their objects until others are created', async () => {
    const session = await open(memoryStorage(10))
    const before = queryObjects(MemoryLog, { format: 'count' })
    const objects = () => queryObjects(MemoryLog, { format: 'count' }) - before
    for (let i = 0; i < 300; i++) await fill(session, `log-${i}`)
    expect(objects()).toBeLessThanOrEqual(11)
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 300; i++) await session.head(`log-${i}`)
    }
    expect(objects()).toBe(300)
    for (let i = 0; i < 600; i++) await fill(session, `idle-${i}`)
    expect(objects()).toBeLessThanOrEqual(11)
    await session.close()
  })

  test('more logs than may have objects stay packed although they are used in turn', async () => {
    const session = await open(memoryStorage(10))
    const before = queryObjects(MemoryLog, { format: 'count' })
    for (let i = 0; i < 1_000; i++) await fill(session, `log-${i}`)
    for (let i = 0; i < 3_000; i++) await session.head(`log-${i % 1_000}`)
    expect(queryObjects(MemoryLog, { format: 'count' }) - before).toBeLessThanOrEqual(11)
    await session.close()
  })

  test('a log that is packed and used again keeps its records, wherever it was changed', async () => {
    const session = await open(packing(memoryStorage(0)))
    const writer = await LogWriter.create(session, 'a')
    const appended = []
    for (let i = 0; i < 40; i++) appended.push(await writer.append({ bodyBytes: 300, expiresAt: NOW + i }))
    expect(await session.read('a', WHOLE_LOG)).toEqual(appended)
    await session.reclaim({ now: NOW + 9, trimmedBefore: 0, blocksMax: 100 })
    expect(await session.read('a', WHOLE_LOG)).toEqual(appended.slice(10))
    appended.push(await writer.append({ bodyBytes: 10, expiresAt: null }))
    await session.reclaim({ now: NOW + 100, trimmedBefore: 0, blocksMax: 100 })
    expect(await session.read('a', WHOLE_LOG)).toEqual(appended.slice(-1))
    await session.close()
  })

  test('a log whose retention was shortened keeps its records when it is packed and used again', async () => {
    const session = await open(packing(memoryStorage(0)))
    const writer = await LogWriter.create(session, 'a')
    const expiries = [null, NOW + 50, NOW + 40, NOW + 60]
    const appended = []
    for (const expiresAt of expiries) appended.push(await writer.append({ bodyBytes: 300, expiresAt }))
    const read = await session.read('a', WHOLE_LOG)
    for (let i = 0; i < 400; i++) {
      await fill(session, `other-${i}`)
      await session.commit([{ kind: 'delete-log', logId: `other-${i - 5}` }])
    }
    expect(read).toEqual(appended)
    expect(await session.read('a', WHOLE_LOG)).toEqual(appended)
    await session.reclaim({ now: NOW + 50, trimmedBefore: 0, blocksMax: 100 })
    expect(await session.read('a', WHOLE_LOG)).toEqual([appended[0], appended[3]])
    await session.close()
  })

  test('blocks that were read stay as they are when their log is packed again or deleted', async () => {
    const session = await open(packing(memoryStorage(0)))
    const writer = await LogWriter.create(session, 'a')
    const appended = [await writer.append({ bodyBytes: 300 })]
    const read = await session.read('a', WHOLE_LOG)
    for (let i = 0; i < 400; i++) {
      await writer.append({ bodyBytes: 10 })
      await fill(session, `other-${i}`)
    }
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    for (let i = 0; i < 400; i++) await fill(session, `another-${i}`)
    expect(read).toEqual(appended)
    await session.close()
  })

  test('finds the records that are due among packed logs', async () => {
    const session = await open(memoryStorage(0))
    for (let i = 0; i < 300; i++) {
      await (await LogWriter.create(session, `log-${i}`)).append({ expiresAt: NOW + (i % 3) })
    }
    const { more, logIds } = await session.reclaim({ now: NOW + 1, trimmedBefore: 0, blocksMax: 1_000 })
    expect({ more, count: logIds.length }).toEqual({ more: false, count: 200 })
    expect(await session.measure(['log-0', 'log-1'])).toEqual([0, 0])
    expect(await session.read('log-2', WHOLE_LOG)).toHaveLength(1)
    await session.close()
  })
})

describe('packed logs with ids of any form', () => {
  const hex = 'c0ffee'.padEnd(32, '0')
  // The bytes of the second are those of the text of the third, which must not be taken for it.
  const ids = [
    hex,
    '61'.repeat(16),
    'a'.repeat(16),
    'a'.repeat(15),
    'a'.repeat(32),
    hex.toUpperCase(),
    '',
    'é',
  ]

  test('keep them apart', async () => {
    const session = await open(packing(memoryStorage(0)))
    const appended = new Map<string, unknown>()
    for (const [index, logId] of ids.entries()) {
      const writer = await LogWriter.create(session, logId)
      appended.set(logId, await writer.append({ bodyBytes: 100 + index }))
    }
    for (const [logId, block] of appended) expect(await session.read(logId, WHOLE_LOG)).toEqual([block])
    await session.commit([{ kind: 'delete-log', logId: ids[1]! }])
    expect(await session.head(ids[1]!)).toBeUndefined()
    expect(await session.read(ids[2]!, WHOLE_LOG)).toEqual([appended.get(ids[2]!)])
    await session.close()
  })

  test('keep heads whose append ids and times are unusual', async () => {
    const session = await open(packing(memoryStorage(0)))
    const appendIds = [
      '',
      '7',
      'a:0',
      'a:7',
      'a:07',
      'a:-1',
      'a:7e3',
      'a:',
      'a:9007199254740993',
      'a:é',
      'a:1:2',
    ]
    for (const [index, appendId] of appendIds.entries()) {
      const { head } = await LogWriter.create(session, `log-${index}`)
      const block = blockAt(NOW - 1_000, NOW + 5)
      for (const [at, appendedAt] of [NOW, 0, 2 ** 52].entries()) {
        const expected = { epoch: head.epoch, seqNum: at, appendId: at === 0 ? '' : appendId }
        const tail = { seqNum: at + 1, timestamp: NOW + 5 }
        const next = { ...head, tail, appendId, appendedAt }
        const { firstSeqNum, endSeqNum } = { firstSeqNum: at, endSeqNum: at + 1 }
        const appended = { ...block, firstSeqNum, endSeqNum }
        await session.append({ logId: `log-${index}`, expected, block: appended, head: next })
        expect(await session.head(`log-${index}`)).toEqual(next)
      }
      expect(await session.read(`log-${index}`, WHOLE_LOG)).toHaveLength(3)
    }
    await session.close()
  })

  test('free their records in the order of their deadlines, although numbers are used again', async () => {
    const session = await open(memoryStorage(0))
    const fillUntil = async (logId: string, expiresAt: number | null) =>
      (await LogWriter.create(session, logId)).append({ expiresAt })
    for (let i = 0; i < 50; i++) await fillUntil(`expiring-${i}`, NOW + 50 - i)
    for (let i = 0; i < 50; i++) await fillUntil(`lasting-${i}`, null)
    for (let i = 0; i < 50; i += 2) await session.commit([{ kind: 'delete-log', logId: `expiring-${i}` }])
    for (let i = 0; i < 25; i++) await fillUntil(`later-${i}`, NOW + 100 + i)
    const due = async (now: number) =>
      (await session.reclaim({ now, trimmedBefore: 0, blocksMax: 1_000 })).logIds
    expect(await due(NOW + 3)).toEqual(['expiring-49', 'expiring-47'])
    expect(await due(NOW + 100)).toHaveLength(24)
    expect(await due(NOW + 99)).toEqual([])
    expect(await due(NOW + 200)).toHaveLength(24)
    expect(await session.read('lasting-7', WHOLE_LOG)).toHaveLength(1)
    await session.close()
  })
})

describe('numbers in an order', () => {
  test('match a sorted array for any sequence of changes', () => {
    const values = fc.array(fc.nat({ max: 2_000 }), { minLength: 1, maxLength: 1_500 })
    fc.assert(
      fc.property(values, fc.constantFrom(1, -1), (numbers, sign) => {
        const list = new SlotOrder((a, b) => sign * (a - b))
        const expected = new Set<number>()
        for (const number of numbers) {
          if (expected.delete(number)) list.delete(number)
          else {
            expected.add(number)
            list.add(number)
          }
        }
        const sorted = [...expected].toSorted((a, b) => sign * (a - b))
        expect(list.first()).toBe(sorted[0])
        const from = sorted[Math.floor(sorted.length / 3)] ?? 0
        const reached = (number: number) => sign * (number - from) >= 0
        expect([...list.from(reached)]).toEqual(sorted.filter(reached))
      }),
    )
  })

  test('stay in order when they are added in order', () => {
    const list = new SlotOrder((a, b) => a - b)
    const numbers = Array.from({ length: 5_000 }, (_, index) => index + 1)
    for (const number of numbers) list.add(number)
    expect([...list.from(() => true)]).toEqual(numbers)
    for (const number of numbers) list.delete(number)
    expect(list.first()).toBeUndefined()
  })
})

describe('packed documents', () => {
  test('keep ids, times and names that occur in any place of a text', () => {
    const packed = new PackedDocuments()
    const id = '0123456789abcdef'.repeat(2)
    const texts = new Map([
      ['basin\0name', { basin: 'name', name: 'name', logId: id, createdAt: 1_700_000_000_000 }],
      ['basin\0other', { basin: 'basin', name: 'other', logId: 'other', createdAt: 1_800_000_000_000 }],
      [
        '',
        {
          '': '',
          id: `${id}${id}1`,
          at: 17_000_000_000_000_000,
          in: [1_700_000_000_000.5, -1_700_000_000_000],
        },
      ],
      [id, { id: id.toUpperCase(), [id]: `"${id}"`, text: `\u0001\u0002\u0003\0 ${id}` }],
      ['basin\0quo"ted\\', { name: 'quo"ted\\', created: '1700000000000', short: id.slice(1) }],
      ['basin\0\u0001', { name: '\u0001' }],
    ])
    for (const [key, value] of texts) packed.set(key, { text: JSON.stringify(value), version: 1 })
    for (const [key, value] of texts) expect(JSON.parse(packed.get(key)!.text)).toEqual(value)
  })

  test('match a map for any sequence of changes', () => {
    const name = fc.oneof(
      fc.constantFrom('a', 'b', 'ab', 'a\0b', '\ufffd', 'é', '😀', ''),
      fc.string({ unit: 'grapheme', maxLength: 5 }),
    )
    const text = fc
      .tuple(name, fc.string({ unit: 'binary', maxLength: 30 }))
      .map((parts) => JSON.stringify(parts))
    const change = fc.tuple(name, fc.option(text))
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
        const packed = new PackedDocuments()
        const expected = new Map<string, { text: string; version: number }>()
        for (const [version, [key, text]] of changes.entries()) {
          if (text === null) packed.delete(key)
          else packed.set(key, { text, version })
          if (text === null) expected.delete(key)
          else expected.set(key, { text, version })
        }
        const keys = [...expected.keys()].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        expect([...packed.keysFrom('')]).toEqual(keys)
        for (const [key, document] of expected) expect(packed.get(key)).toEqual(document)
      }),
    )
  })

  test('do not mistake a lone surrogate for U+FFFD', () => {
    const packed = new PackedDocuments()
    packed.set('\ufffd', { text: '1', version: 1 })
    expect(packed.get('\ud800')).toBeUndefined()
  })

  test('store little more of a text than what distinguishes it from others', () => {
    const table = new PackedTable()
    const packed = new PackedDocuments(table)
    for (let i = 0; i < 10_000; i++) {
      const text = JSON.stringify({ name: `stream-${i}`, config: 'the same for all of them, '.repeat(20) })
      packed.set(`stream-${i}`, { text, version: i })
    }
    expect(table.pageBytes / 10_000).toBeLessThan(30)
  })

  test('store 64 bytes of the document of a stream', () => {
    const table = new PackedTable()
    const packed = new PackedDocuments(table)
    for (let i = 0; i < 10_000; i++) {
      const logId = idFrom(secureRandom)
      const document = {
        basin: 'my-basin',
        name: `streams/${i}`,
        logId,
        createdAt: NOW + i,
        config: SYSTEM_STREAM_CONFIG,
        epoch: 1,
      }
      packed.set(streamKey('my-basin', `streams/${i}`), { text: JSON.stringify(document), version: i })
    }
    expect(table.pageBytes / 10_000).toBeLessThan(64)
  })
})

describe('a packed table', () => {
  test('gives the memory of removed and replaced values back', () => {
    const table = new PackedTable()
    const value = new Uint8Array(1_000)
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < 2_000; i++) table.set(utf8(`key-${i}`), value)
      expect(table.pageBytes).toBeLessThan(2.2 * 2_000 * 1_017)
    }
    for (let i = 0; i < 1_999; i++) table.delete(utf8(`key-${i}`))
    expect(table.size).toBe(1)
    expect(table.pageBytes).toBeLessThan(3 * 65_536)
    expect(table.value(table.find(utf8('key-1999')))).toEqual(value)
  })
})

function blockAt(firstTimestamp: number, lastTimestamp: number) {
  const data = new Uint8Array(80).fill(7)
  return {
    firstSeqNum: 0,
    endSeqNum: 1,
    firstTimestamp,
    lastTimestamp,
    meteredBytes: 80,
    expiresAt: null,
    data,
  }
}

function open(storage: Storage): Promise<StorageSession> {
  return storage.open({ clock: systemClock, onLogChanged() {}, onBackgroundError() {} })
}

async function fill(session: StorageSession, logId: string): Promise<void> {
  await (await LogWriter.create(session, logId)).append({ bodyBytes: 20 })
}
