import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NOW, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter, reclaimAll } from '../../../adapters/conformance/log-writer.ts'
import { decodeBlock } from '../../../adapters/storage/key-value/layout.ts'
import type { OrderedKeyValueOptions } from '../../../adapters/storage/key-value/storage.ts'
import type { OrderedKeyValueStore } from '../../../adapters/storage/key-value/store.ts'
import { blockExpiresAt } from '../../../src/core/retention.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { testClock } from '../../support/index.ts'
import { OrderedMap, orderedMapStorage } from './ordered-map.ts'

const CONTEXT = { clock: testClock(), onLogChanged() {} }
const CONFLICT = { name: 'StorageConflict' }
/** Too large to be beside the numbers of its block. */
const LARGE = 20_000

const openOn = (map: OrderedMap, options?: Partial<OrderedKeyValueOptions>): Promise<StorageSession> =>
  orderedMapStorage(map, options).open(CONTEXT)

/** A storage whose store has some methods replaced, which may call those of the map. */
function openWith(
  map: OrderedMap,
  replace: (store: OrderedKeyValueStore) => Partial<OrderedKeyValueStore>,
): Promise<StorageSession> {
  return openOn(map, {
    open: async () => {
      const store = map.connect()
      return { ...store, ...replace(store) }
    },
  })
}

const initial = (keys: [Uint8Array, Uint8Array][]) => keys.map(([key]) => String.fromCharCode(key[0]!)).sort()
const keysOf = ({ entries }: OrderedMap, kind: string) =>
  entries.filter(([key]) => String.fromCharCode(key[0]!) === kind)
const puts = ({ batches }: OrderedMap) => batches.map((batch) => initial([...batch.puts] as never))

describe('the writes', () => {
  it('include for an append a block and a log, and an index entry if the first records expire', async () => {
    const map = new OrderedMap()
    const writer = await LogWriter.create(await openOn(map), 'a')
    map.batches.length = 0
    await writer.append({ expiresAt: NOW })
    await writer.append({ expiresAt: NOW })
    await writer.append({ count: 1, bodyBytes: LARGE })
    expect(puts(map)).toEqual([
      ['b', 'l', 'x'],
      ['b', 'l'],
      ['b', 'd', 'l'],
    ])
  })

  it('for waiting appends share a batch, and blocks that may be merged are one', async () => {
    const map = new OrderedMap()
    const session = await openOn(map)
    const writers = await Promise.all(['a', 'b'].map((logId) => LogWriter.create(session, logId)))
    map.batches.length = 0
    await Promise.all(writers.flatMap((writer) => Array.from({ length: 10 }, () => writer.append())))
    expect(puts(map)).toEqual([['b', 'b', 'l', 'l']])
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toHaveLength(10)
  })

  it('leave nothing of logs that were deleted and reclaimed', async () => {
    const map = new OrderedMap()
    const session = await openOn(map)
    const before = map.size
    for (const logId of ['a', 'b']) {
      const writer = await LogWriter.create(session, logId)
      for (let i = 0; i < 150; i++) void writer.append({ expiresAt: NOW + i })
      await writer.append({ bodyBytes: LARGE, trimPoint: 1 })
    }
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1 }])
    await session.commit([
      { kind: 'delete-log', logId: 'a' },
      { kind: 'delete-log', logId: 'b' },
      { kind: 'delete', collection: 'streams', key: 'a' },
    ])
    await reclaimAll(session, { now: NOW + 50, trimmedBefore: NOW, blocksMax: 30 })
    expect(map.size).toBe(before)
  })
})

it('a reclaim reads few blocks of a log that it does not free', async () => {
  const map = new OrderedMap()
  let scanned = 0
  const session = await openWith(map, (store) => ({
    scan: async (range) => {
      const found = await store.scan(range)
      scanned += found.filter(([key]) => key[0] === 'b'.charCodeAt(0)).length
      return found
    },
  }))
  const writer = await LogWriter.create(session, 'a')
  for (let i = 0; i < 150; i++) await writer.append({ expiresAt: NOW + i })
  const reclaimed = async (now: number) => {
    scanned = 0
    await reclaimAll(session, { now, trimmedBefore: 0, blocksMax: 250 })
    return scanned
  }
  expect(await reclaimed(NOW)).toBe(4)
  expect(await reclaimed(NOW + 5)).toBe(12)
  expect(seqNumsOf(await session.read('a', WHOLE_LOG))[0]).toBe(6)
})

describe('small appends', () => {
  it('are merged in the background', async () => {
    const map = new OrderedMap()
    const session = await openOn(map)
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 1_000; i++) await writer.append({ bodyBytes: 50 })
    const metered = await session.measure(['a'])
    await session.close()
    expect(keysOf(map, 'b').length).toBeLessThan(80)
    const again = await openOn(map)
    expect(seqNumsOf(await again.read('a', WHOLE_LOG))).toEqual(Array.from({ length: 1_000 }, (_, i) => i))
    expect(await again.measure(['a'])).toEqual(metered)
    // A session that was closed early leaves no blocks that are never merged.
    const next = new LogWriter(again, 'a', (await again.head('a'))!)
    for (let i = 0; i < 64; i++) await next.append()
    await again.close()
    expect(keysOf(map, 'b').length).toBeLessThan(80)
  })

  it('stay as they are if they expire, and are freed one by one', async () => {
    const map = new OrderedMap()
    const session = await openOn(map)
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 100; i++) await writer.append({ expiresAt: NOW + i })
    await reclaimAll(session, { now: NOW + 49, trimmedBefore: NOW, blocksMax: 100 })
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual(
      Array.from({ length: 50 }, (_, i) => 50 + i),
    )
    await session.close()
  })

  it('that cannot be merged are read, and merged after as many more', async () => {
    const map = new OrderedMap()
    let isFailing = true
    let failures = 0
    const session = await openWith(map, (store) => ({
      transact: async (batch) => {
        if (isFailing && batch.deletes.length > 0) {
          failures++
          throw new StorageFailure('io', 'no', { nothingWritten: true })
        }
        return store.transact(batch)
      },
    }))
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 200; i++) await writer.append()
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toHaveLength(200)
    expect(failures).toBe(3)
    isFailing = false
    for (let i = 0; i < 64; i++) await writer.append()
    await session.close()
    expect(keysOf(map, 'b').length).toBeLessThan(20)
    expect(keysOf(map, 'l')).toHaveLength(1)
  })

  it('are returned once by a read during which they are merged', async () => {
    const map = new OrderedMap()
    const writer = await LogWriter.create(await openOn(map, { shared: true }), 'a')
    for (let i = 0; i < 63; i++) await writer.append({ count: 1, bodyBytes: 1 })
    let scans = 0
    const reader = await openWith(map, (store) => ({
      scan: async (range) => {
        if (++scans === 2) {
          await writer.append({ count: 1, bodyBytes: 1 })
          await writer.session.close()
        }
        return store.scan(range)
      },
    }))
    const read = seqNumsOf(await reader.read('a', WHOLE_LOG))
    expect(keysOf(map, 'b')).toHaveLength(1)
    expect(read).toEqual(Array.from({ length: read.length }, (_, i) => i))
    expect(read.length).toBeGreaterThan(0)
    const rest = seqNumsOf(await reader.read('a', { ...WHOLE_LOG, from: { seqNum: read.length } }))
    // The first block may begin earlier.
    expect(rest).toEqual(Array.from({ length: 64 }, (_, i) => i))
  })

  it('are read and trimmed exactly while they are merged by several sessions', {
    tags: ['slow'],
  }, async () => {
    const append = fc.record({
      kind: fc.constant('append' as const),
      bodyBytes: fc.constantFrom(1, 400, 9_000, LARGE),
    })
    const trim = fc.record({
      kind: fc.constant('trim' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    const step = fc.oneof({ weight: 60, arbitrary: append }, { weight: 1, arbitrary: trim })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 100, maxLength: 300 }), async (steps) => {
        const map = new OrderedMap()
        const sessions = [await openOn(map, { shared: true }), await openOn(map, { shared: true })]
        let { head } = await LogWriter.create(sessions[0]!, 'a')
        let kept = 0
        for (const [index, each] of steps.entries()) {
          const session = sessions[index % 7 === 0 ? 1 : 0]!
          const writer = new LogWriter(session, 'a', head)
          const end = head.tail.seqNum
          if (each.kind === 'append') await writer.append({ count: 1, bodyBytes: each.bodyBytes })
          else {
            const trimPoint = Math.max(kept, Math.floor(each.share * end))
            await writer.append({ count: 1, trimPoint })
            await session.reclaim({ now: NOW, trimmedBefore: Number.MAX_SAFE_INTEGER, blocksMax: 1_000 })
            kept = trimPoint
          }
          head = writer.head
          if (index % 20 !== 0) continue
          const read: number[] = []
          while (read.length < head.tail.seqNum - kept) {
            const from = { seqNum: kept + read.length }
            const found = seqNumsOf(await sessions[1]!.read('a', { ...WHOLE_LOG, from }))
            // The first block may begin earlier.
            read.push(...found.filter((seqNum) => seqNum >= from.seqNum))
            expect(found.at(-1)).toBeGreaterThanOrEqual(from.seqNum)
          }
          expect(read).toEqual(Array.from({ length: head.tail.seqNum - kept }, (_, i) => kept + i))
        }
        for (const session of sessions) await session.close()
        const data = new Set(keysOf(map, 'd').map(([key]) => String(key.slice(0, -4))))
        const blocks = new Set(keysOf(map, 'b').map(([key]) => String([100, ...key.slice(1)])))
        expect([...data].filter((key) => !blocks.has(key))).toEqual([])
      }),
    )
  })
})

describe('a shared store', () => {
  const SHARED = { shared: true }

  it('an append on the head of another engine succeeds, and on an older head conflicts', async () => {
    const map = new OrderedMap()
    const [one, other] = [await openOn(map, SHARED), await openOn(map, SHARED)]
    const writer = await LogWriter.create(one, 'a')
    await writer.append()
    const stale = new LogWriter(one, 'a', writer.head)
    const current = new LogWriter(other, 'a', writer.head)
    await current.append()
    await new LogWriter(one, 'a', current.head).append()
    await expect(stale.append()).rejects.toMatchObject(CONFLICT)
    expect(seqNumsOf(await other.read('a', WHOLE_LOG))).toEqual([0, 1, 2])
  })

  it('engines that write to other logs and free blocks meanwhile do not make an append fail', async () => {
    const map = new OrderedMap()
    const sessions = await Promise.all([0, 1, 2].map(() => openOn(map, SHARED)))
    const first = await LogWriter.create(sessions[0]!, 'log')
    const writers = await Promise.all(
      sessions.map((session, index) => LogWriter.create(session, `log-${index}`)),
    )
    for (let round = 0; round < 20; round++) {
      await Promise.all([
        first.append({ expiresAt: NOW + round + 1 }),
        ...writers.map((writer) => writer.append({ count: 2 })),
        sessions[1]!.reclaim({ now: NOW + round, trimmedBefore: 0, blocksMax: 5 }),
        sessions[2]!.reclaim({ now: NOW + round, trimmedBefore: 0, blocksMax: 5 }),
      ])
    }
    await reclaimAll(sessions[2]!, { now: NOW + 19, trimmedBefore: 0, blocksMax: 5 })
    expect(seqNumsOf(await sessions[1]!.read('log', WHOLE_LOG))).toEqual([19])
    const [block] = await sessions[1]!.read('log', WHOLE_LOG)
    expect(await sessions[2]!.measure(['log', 'log-1'])).toEqual([
      block!.meteredBytes,
      writers[1]!.written.reduce((sum, { block }) => sum + block.meteredBytes, 0),
    ])
  })
})

describe('two engines that free blocks at once', () => {
  /** An engine that waits before its calls, each time for one of the numbers of turns. */
  const openSlow = (map: OrderedMap, delays: readonly number[]) => {
    let calls = 0
    const wait = async () => {
      for (let turns = delays[calls++ % delays.length]!; turns > 0; turns--) {
        await new Promise<void>((resolve) => setImmediate(resolve))
      }
    }
    return openOn(map, {
      shared: true,
      open: async () => {
        const store = map.connect()
        return {
          ...store,
          get: (key) => wait().then(() => store.get(key)),
          scan: (range) => wait().then(() => store.scan(range)),
          transact: (batch) => wait().then(() => store.transact(batch)),
        }
      },
    })
  }

  const delays = fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 7 })
  const time = fc.nat({ max: 20 }).map((ms) => NOW + ms)
  const round = fc.record({
    expiries: fc.array(fc.option(time), { maxLength: 5 }),
    extension: fc.option(time),
    trim: fc.constantFrom(null, 0.5, 1),
    times: fc.tuple(time, time),
  })

  it('subtract each block once, and leave nothing of it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(round, { minLength: 1, maxLength: 5 }),
        fc.tuple(delays, delays),
        async (rounds, delays) => {
          const map = new OrderedMap()
          const writer = await LogWriter.create(await openOn(map, { shared: true }), 'a')
          const engines = await Promise.all(delays.map((each) => openSlow(map, each)))
          for (const { expiries, extension, trim, times } of rounds) {
            for (const expiresAt of expiries) await writer.append({ expiresAt })
            const below = writer.head.tail.seqNum
            if (extension !== null) await writer.reconfigure([{ below, after: 0, until: extension + 10 }])
            if (trim !== null) await writer.append({ trimPoint: Math.floor(trim * below) })
            const reclaims = engines.map((engine, index) =>
              engine.reclaim({ now: times[index]!, trimmedBefore: NOW, blocksMax: 100 }),
            )
            await Promise.all(reclaims)
            await writer.measured()
            const [first] = keysOf(map, 'b').map(([, value]) => decodeBlock(value))
            const expiresAt = first ? blockExpiresAt(first, writer.head.extensions) : null
            expect(keysOf(map, 'x')).toHaveLength(expiresAt === null ? 0 : 1)
          }
        },
      ),
    )
  })
})

describe('a store that fails', () => {
  const lost = async () => {
    throw new Error('connection lost')
  }

  it('reads had no effect, and the outcome of writes is unknown', async () => {
    const map = new OrderedMap()
    const writer = await LogWriter.create(await openOn(map), 'a')
    const session = await openWith(map, ({ get }) => ({
      get: async (key) => (key[0] === 'f'.charCodeAt(0) ? get(key) : lost()),
      scan: lost,
    }))
    const message = 'ordered-map failed: connection lost'
    for (const call of [session.head('a'), session.get('streams', 'a'), session.measure(['a'])]) {
      await expect(call).rejects.toMatchObject({ kind: 'io', message, nothingWritten: true })
    }
    const writing = await openWith(map, () => ({ transact: lost }))
    const append = new LogWriter(writing, 'a', writer.head).append()
    await expect(append).rejects.toMatchObject({ kind: 'io', message, nothingWritten: false })
  })

  it('lets the head be read again if an outcome is unknown', async () => {
    const map = new OrderedMap()
    let isAnswerLost = false
    const session = await openWith(map, ({ transact }) => ({
      async transact(batch) {
        const isApplied = await transact(batch)
        if (isAnswerLost) await lost()
        return isApplied
      },
    }))
    const writer = await LogWriter.create(session, 'a')
    await writer.append()
    isAnswerLost = true
    await expect(writer.append()).rejects.toMatchObject({ nothingWritten: false })
    isAnswerLost = false
    expect(await session.head('a')).toEqual(writer.head)
    await writer.append()
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0, 1, 2])
  })

  it('a failure is passed on, and no space left is reported until an append succeeds', async () => {
    const map = new OrderedMap()
    let isFull = false
    const session = await openWith(map, ({ transact }) => ({
      async transact(batch) {
        if (isFull) throw new StorageFailure('quota', 'full', { nothingWritten: true })
        return transact(batch)
      },
    }))
    const writer = await LogWriter.create(session, 'a')
    const before = writer.head
    expect(session.isFull?.()).toBe(false)
    isFull = true
    await expect(writer.append()).rejects.toMatchObject({ kind: 'quota', nothingWritten: true })
    expect(session.isFull?.()).toBe(true)
    isFull = false
    await new LogWriter(session, 'a', before).append()
    expect(session.isFull?.()).toBe(false)
  })
})

describe('opening', () => {
  it('is refused while another engine is open, and possible after a failure', async () => {
    const map = new OrderedMap()
    let failures = 1
    const storage = orderedMapStorage(map, {
      open: async () => {
        if (failures-- > 0) throw new Error('no such host')
        return map.connect()
      },
    })
    await expect(storage.open(CONTEXT)).rejects.toMatchObject({ kind: 'io', nothingWritten: true })
    const session = await storage.open(CONTEXT)
    await expect(storage.open(CONTEXT)).rejects.toMatchObject({ kind: 'blocked' })
    await session.close()
    await (await storage.open(CONTEXT)).close()
  })

  it.each([1, 3])('is refused if the store has format %i, which is closed again', async (format) => {
    const map = new OrderedMap()
    map.set(Uint8Array.of('f'.charCodeAt(0)), new TextEncoder().encode(`${format}`))
    let closed = 0
    const opening = openWith(map, () => ({ close: async () => void closed++ }))
    await expect(opening).rejects.toMatchObject({
      kind: 'blocked',
      message: `the store has format ${format}; this version of headwater reads 2`,
    })
    expect(closed).toBe(1)
  })

  it.each<[object, string]>([
    [{ name: undefined }, '`name`, `durability` and `open` are required'],
    [{ durability: 'forever' }, '`durability` must be one of none, process-crash, power-loss'],
    [{ sharde: true }, 'unknown member `sharde`; expected `name`, `durability`, `shared`, `open`'],
  ])('rejects the options %j', (options, message) => {
    expect(() => orderedMapStorage(new OrderedMap(), options)).toThrow(
      expect.objectContaining({ code: 'invalid', message }),
    )
  })
})

describe('damage', () => {
  const CORRUPT = { kind: 'corrupt', nothingWritten: true }

  /** Changes the values whose key begins with a letter. */
  function damage(
    map: OrderedMap,
    letter: string,
    change: (value: Uint8Array) => Uint8Array | undefined,
  ): void {
    for (const [key, value] of map.entries) {
      if (key[0] === letter.charCodeAt(0)) map.set(key, change(value))
    }
  }

  const numberAt = (index: number, number: number) => (value: Uint8Array) => {
    const copy = new Uint8Array(value)
    new DataView(copy.buffer).setFloat64(8 * index, number)
    return copy
  }

  it.each<[string, string, (value: Uint8Array) => Uint8Array | undefined]>([
    ['a log that is not JSON', 'l', (value) => value.subarray(1)],
    ['a log without a head', 'l', () => new TextEncoder().encode('{}')],
    ['a block without its numbers', 'b', (value) => value.subarray(0, 30)],
    ['a block that ends before it begins', 'b', numberAt(0, 50)],
    ['a block with a number that is none', 'b', numberAt(4, Number.NaN)],
    ['a block with data and parts', 'b', (value) => Uint8Array.of(...value, 1)],
    ['a part that is missing', 'd', () => undefined],
  ])('%s is reported when it is read', async (_, letter, change) => {
    const map = new OrderedMap()
    const writer = await LogWriter.create(await openOn(map), 'a')
    await writer.append({ bodyBytes: LARGE })
    damage(map, letter, change)
    const session = await openOn(map)
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
  })

  it('is reported in a document without quoting it', async () => {
    const map = new OrderedMap()
    const session = await openOn(map)
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 'secret' }])
    damage(map, 'c', (value) => value.subarray(0, value.length - 1))
    const failure = await session.get('streams', 'a').catch((error: unknown) => error)
    expect(failure).toMatchObject(CORRUPT)
    expect(String(failure)).not.toContain('secret')
    damage(map, 'c', (value) => value.subarray(0, 4))
    await expect(session.list('streams', { prefix: '', after: '', limit: 1 })).rejects.toMatchObject(CORRUPT)
  })
})
