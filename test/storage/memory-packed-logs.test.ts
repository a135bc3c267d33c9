import { createHash } from 'node:crypto'
import { queryObjects } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { block, FAR, LogWriter, NOW, WHOLE_LOG } from '../../adapters/conformance/log-writer.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { MemoryLog } from '../../adapters/storage/memory/log.ts'
import { memoryStorage } from '../../adapters/storage/memory/memory-storage.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { AppendRequest, Head, Storage, StorageSession, StoredBlock } from '../../src/storage/contract.ts'

describe.each([
  ['have rows', hexId],
  ['have ids of another form', (logId: string) => `${logId}-`],
])('memory conforms to the storage contract while all documents are packed, and logs %s', (_, idOf) => {
  const suite = conformanceSuite({
    manifest: memory().manifest,
    make: async () => ({ storage: packed(idOf), dispose: async () => {} }),
    keepsDataWhenClosed: true,
  })
  for (const { title, skip, run } of suite) {
    if (skip !== undefined) test.skip(`${title} (${skip})`)
    else test(title, run)
  }
})

/** An id of the form that the engine draws. */
function hexId(logId: string): string {
  return createHash('md5').update(logId).digest('hex')
}

/** A storage that packs everything, in which the logs have other ids. */
function packed(idOf: (logId: string) => string): Storage {
  const storage = memoryStorage(0)
  const names = new Map<string, string>()
  const stored = (logId: string) => {
    names.set(idOf(logId), logId)
    return idOf(logId)
  }
  return {
    manifest: storage.manifest,
    async open(context) {
      const onLogChanged = (id: string) => {
        const logId = names.get(id)
        if (logId !== undefined) context.onLogChanged(logId)
      }
      const session = await storage.open({ ...context, onLogChanged })
      // The first log lets the storage load the code.
      if ((await session.head('first')) === undefined) await create(session, 'first')
      return {
        get: (collection, key) => session.get(collection, key),
        list: (collection, range) => session.list(collection, range),
        commit: (changes) =>
          session.commit(
            changes.map((change) =>
              'logId' in change ? { ...change, logId: stored(change.logId) } : change,
            ),
          ),
        head: (logId) => session.head(stored(logId)),
        allocate: (logId, bytes) => session.allocate!(stored(logId), bytes),
        append: (request) => session.append({ ...request, logId: stored(request.logId) }),
        read: (logId, range) => session.read(stored(logId), range),
        async reclaim(limits) {
          const { more, logIds } = await session.reclaim(limits)
          return { more, logIds: logIds.map((id) => names.get(id)!) }
        },
        measure: (logIds) => session.measure(logIds.map(stored)),
        close: () => session.close(),
      }
    },
  }
}

const LOGS = ['a', 'b', 'c', 'd', 'e', 'f']

const LOG = fc.constantFrom(...LOGS)

const APPEND = fc.record({
  kind: fc.constant('append' as const),
  logId: LOG,
  by: fc.nat({ max: 1 }),
  /** Few of the first kind make a log large, few of the second have a buffer. */
  bodyBytes: fc.oneof(fc.constantFrom(2_000, 6_000), fc.integer({ min: 0, max: 60 })),
  count: fc.constantFrom(1, 1, 3, 20),
  expiresAt: fc.option(fc.integer({ min: NOW, max: NOW + 100 })),
  trim: fc.option(fc.record({ upTo: fc.double({ min: 0, max: 1, noNaN: true }), at: fc.nat({ max: 100 }) })),
  fencingToken: fc.option(fc.constantFrom('', 'token')),
  appendId: fc.option(fc.constantFrom('x', 'other:', '0')),
  isClosed: fc.constantFrom(false, false, false, true),
  stale: fc.constantFrom({}, {}, {}, {}, { appendId: 'engine:0' }, { epoch: 99 }),
})

type Append = typeof APPEND extends fc.Arbitrary<infer Change> ? Change : never

const CHANGE = fc.oneof(
  { weight: 6, arbitrary: APPEND },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('extend' as const),
      logId: LOG,
      epoch: fc.constantFrom(1, 2, 7, 2 ** 40),
      below: fc.nat({ max: 50 }),
      until: fc.option(fc.integer({ min: NOW, max: NOW + 200 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), logId: LOG }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('reclaim' as const),
      now: fc.integer({ min: NOW - 1, max: NOW + 220 }),
      trimmedBefore: fc.integer({ min: NOW - 1, max: NOW + 100 }),
      blocksMax: fc.constantFrom(1, 5, 1_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('fill' as const), count: fc.nat({ max: 300 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('read' as const), logId: LOG, from: fc.nat() }) },
)

describe('logs that are packed', () => {
  test('match logs with objects for any sequence of changes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(CHANGE, { maxLength: 80, size: 'max' }), async (changes) => {
        const [one, plain] = [packed(hexId), memoryStorage(1_000_000)]
        const [first, second] = [await open(one), await open(one)]
        const model = await open(plain)
        const both = [first, model]
        const read: { readonly blocks: readonly StoredBlock[]; readonly copy: readonly StoredBlock[] }[] = []
        for (const logId of LOGS) for (const session of both) await create(session, logId)
        let filled = 0
        let appends = 0
        for (const change of changes) {
          if (change.kind === 'append') {
            for (let i = 0; i < change.count; i++) {
              const head = await model.head(change.logId)
              if (head === undefined) break
              const session = change.by === 0 ? first : second
              const results = []
              appends++
              for (const target of [session, model]) {
                const request = requestOf(target, head, appends, change)
                results.push(
                  await target.append(request).then(
                    () => 'appended',
                    (error) => error.message,
                  ),
                )
              }
              expect(results[0]?.replace(hexId(change.logId), change.logId)).toBe(results[1])
            }
          } else if (change.kind === 'extend') {
            const { logId, epoch, below, until } = change
            if ((await model.head(logId)) === undefined) continue
            const extensions = [{ below, after: NOW + 20, until }]
            for (const session of both)
              await session.commit([{ kind: 'set-epoch', logId, epoch, extensions }])
          } else if (change.kind === 'delete') {
            const { logId } = change
            for (const session of both) await session.commit([{ kind: 'delete-log', logId }])
          } else if (change.kind === 'reclaim') {
            const freed = []
            // Logs that are due at the same time may come in another order.
            for (const session of both) {
              const logIds = new Set<string>()
              for (let more = true; more; ) {
                const reclaimed = await session.reclaim(change)
                more = reclaimed.more
                for (const logId of reclaimed.logIds) logIds.add(logId)
              }
              freed.push([...logIds].toSorted())
            }
            expect(freed[0]).toEqual(freed[1])
          } else if (change.kind === 'fill') {
            // Slabs are left and compacted.
            for (let i = 0; i < change.count; i++) await fill(first, `filled-${filled++}`)
            for (let i = Math.max(filled - 900, 0); i < filled - 10; i++) {
              await first.commit([{ kind: 'delete-log', logId: `filled-${i}` }])
            }
          } else {
            const { logId } = change
            const seqNum = change.from % (((await model.head(logId))?.tail.seqNum ?? 0) + 2)
            for (const from of [{ seqNum }, { timestamp: NOW + seqNum }]) {
              const range = { ...WHOLE_LOG, from }
              const blocks = await first.read(logId, range)
              expect(blocks).toEqual(await model.read(logId, range))
              read.push({ blocks, copy: structuredClone(blocks) })
            }
          }
          for (const logId of LOGS) expect(await second.head(logId)).toEqual(await model.head(logId))
          expect(await first.measure(LOGS)).toEqual(await model.measure(LOGS))
        }
        for (const logId of LOGS) {
          expect(await second.read(logId, WHOLE_LOG)).toEqual(await model.read(logId, WHOLE_LOG))
        }
        // Readers keep views.
        for (const { blocks, copy } of read) expect(blocks).toEqual(copy)
      }),
      { numRuns: 60 },
    )
  })

  test('have no objects if they are created one after another', async () => {
    const session = await open(memoryStorage(100))
    const before = queryObjects(MemoryLog, { format: 'count' })
    for (let i = 0; i < 10_000; i++) await fill(session, hexId(`log-${i}`))
    expect(queryObjects(MemoryLog, { format: 'count' }) - before).toBeLessThanOrEqual(1)
    for (let i = 0; i < 10_000; i++) expect(await session.read(hexId(`log-${i}`), WHOLE_LOG)).toHaveLength(1)
    await session.close()
  })

  test('have objects once they outgrow their rows, until they are deleted', async () => {
    const session = await open(packed(hexId))
    const before = queryObjects(MemoryLog, { format: 'count' })
    const objects = () => queryObjects(MemoryLog, { format: 'count' }) - before
    const [large, long] = [await LogWriter.create(session, 'large'), await LogWriter.create(session, 'long')]
    const appended: StoredBlock[] = []
    for (let i = 0; i < 3; i++) appended.push(await large.append({ bodyBytes: 5_000 }))
    for (let i = 0; i < 64; i++) await long.append({ bodyBytes: 5 })
    expect(objects()).toBe(0)
    appended.push(await large.append({ bodyBytes: 5_000 }))
    await long.append({ bodyBytes: 5 })
    expect(objects()).toBe(2)
    expect(await session.read('large', WHOLE_LOG)).toEqual(appended)
    expect(await session.read('long', WHOLE_LOG)).toHaveLength(65)
    await session.commit([
      { kind: 'delete-log', logId: 'large' },
      { kind: 'delete-log', logId: 'long' },
    ])
    expect(objects()).toBe(0)
    await session.close()
  })

  test('keep the records that they had as objects, and get rows when others are created', async () => {
    const session = await open(memoryStorage(100))
    const before = queryObjects(MemoryLog, { format: 'count' })
    const ids = Array.from({ length: 90 }, (_, i) => (i % 9 === 0 ? `log-${i}` : hexId(`log-${i}`)))
    const appended = new Map<string, StoredBlock[]>()
    const writers = []
    for (const [index, logId] of ids.entries()) {
      const writer = await LogWriter.create(session, logId)
      const blocks = []
      for (let i = 0; i < index; i++) {
        blocks.push(await writer.append({ bodyBytes: 200, expiresAt: i === 0 ? NOW : FAR }))
      }
      if (index > 5) await writer.append({ trimPoint: 3 }).then((block) => blocks.push(block))
      appended.set(logId, blocks)
      writers.push(writer)
    }
    for (let i = 0; i < 30; i++) await fill(session, hexId(`later-${i}`))
    // Ten with ids of another form, and those that are too large.
    const large = ids.filter((id) => !id.startsWith('log') && appended.get(id)!.length > 64).length
    expect(queryObjects(MemoryLog, { format: 'count' }) - before).toBe(10 + large)
    for (const writer of writers) {
      const { logId } = writer
      expect(await session.head(logId)).toEqual(writer.head)
      appended.get(logId)!.push(await writer.append())
      expect(await session.read(logId, WHOLE_LOG)).toEqual(appended.get(logId))
    }
    await session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 10_000 })
    for (const [index, logId] of ids.entries()) {
      const kept = appended.get(logId)!.slice(index > 5 ? 3 : index > 0 ? 1 : 0)
      expect(await session.read(logId, WHOLE_LOG)).toEqual(kept)
    }
    await session.close()
  })

  test('do not change blocks that were read when they are appended to, compacted or deleted', async () => {
    const session = await open(packed(hexId))
    const writer = await LogWriter.create(session, 'a')
    const appended = [await writer.append({ bodyBytes: 300 })]
    const read = await session.read('a', WHOLE_LOG)
    for (let i = 0; i < 400; i++) {
      if (i < 20) await writer.append({ bodyBytes: 10 })
      await fill(session, `other-${i}`, 3_000)
      await session.commit([{ kind: 'delete-log', logId: `other-${i - 5}` }])
    }
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    for (let i = 0; i < 400; i++) await fill(session, `another-${i}`, 3_000)
    expect(read).toEqual(appended)
    await session.close()
  })

  test('have nothing of a deleted log whose row they use again', async () => {
    const session = await open(packed(hexId))
    const writer = await LogWriter.create(session, 'a')
    await writer.append({ fencingToken: 'token', expiresAt: NOW + 5, trimPoint: 0 })
    await writer.append({ trimPoint: 1 })
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    const next = await LogWriter.create(session, 'b')
    expect(await session.head('b')).toEqual(next.head)
    expect(await session.head('a')).toBeUndefined()
    expect(await session.measure(['a', 'b'])).toEqual([0, 0])
    const appended = await next.append({ expiresAt: NOW + 50 })
    const { logIds } = await session.reclaim({ now: NOW + 49, trimmedBefore: FAR, blocksMax: 100 })
    expect(logIds).toEqual([])
    expect(await session.read('b', WHOLE_LOG)).toEqual([appended])
    await session.close()
  })

  test('keep apart ids of any form', async () => {
    const hex = 'c0ffee'.padEnd(32, '0')
    const ids = [hex, `${hex.slice(1)}0`, '61'.repeat(16), 'a'.repeat(32), hex.toUpperCase(), 'a', '', 'é']
    const session = await open(packed((logId) => logId))
    const appended = new Map<string, StoredBlock>()
    for (const [index, logId] of ids.entries()) {
      appended.set(logId, await (await LogWriter.create(session, logId)).append({ bodyBytes: 100 + index }))
    }
    for (const [logId, block] of appended) expect(await session.read(logId, WHOLE_LOG)).toEqual([block])
    await session.commit([{ kind: 'delete-log', logId: hex }])
    expect(await session.head(hex)).toBeUndefined()
    expect(await session.read(ids[1]!, WHOLE_LOG)).toEqual([appended.get(ids[1]!)])
    await session.close()
  })

  test('keep heads whose append ids and times are unusual', async () => {
    const session = await open(packed(hexId))
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
      const logId = `log-${index}`
      const { head } = await LogWriter.create(session, logId)
      for (const [at, appendedAt] of [NOW, 0, 2 ** 52].entries()) {
        const expected = { epoch: head.epoch, seqNum: at, appendId: at === 0 ? '' : appendId }
        const tail = { seqNum: at + 1, timestamp: NOW + 5 }
        const next = { ...head, tail, appendId, appendedAt }
        await session.append({ logId, expected, block: block({ firstSeqNum: at }), head: next })
        expect(await session.head(logId)).toEqual(next)
      }
      expect(await session.read(logId, WHOLE_LOG)).toHaveLength(3)
    }
    await session.close()
  })

  test('free their records in the order of their deadlines, although rows are used again', async () => {
    const session = await open(packed(hexId))
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

/** The same request for any session that has the log. */
function requestOf(session: StorageSession, head: Head, number: number, change: Append): AppendRequest {
  const { logId, bodyBytes, expiresAt, trim, fencingToken, appendId, isClosed, stale } = change
  const writer = new LogWriter(session, logId, head)
  const trimPoint = trim === null ? undefined : Math.floor(trim.upTo * head.tail.seqNum)
  const request = writer.request({
    bodyBytes,
    expiresAt,
    trimPoint: trimPoint !== undefined && trimPoint > head.trimPoint ? trimPoint : undefined,
    trimmedAt: trim === null ? undefined : NOW + trim.at,
    fencingToken: fencingToken ?? undefined,
    writeState: isClosed ? { closed: true } : undefined,
  })
  return {
    ...request,
    expected: { ...request.expected, ...stale },
    head: { ...request.head, appendId: `${appendId ?? 'engine:'}${number}` },
  }
}

function open(storage: Storage): Promise<StorageSession> {
  return storage.open({ clock: systemClock, onLogChanged() {}, onBackgroundError() {} })
}

async function create(session: StorageSession, logId: string): Promise<void> {
  await session.commit([{ kind: 'create-log', logId, epoch: 1, createdAt: NOW }])
}

async function fill(session: StorageSession, logId: string, bodyBytes = 20): Promise<void> {
  await (await LogWriter.create(session, logId)).append({ bodyBytes })
}
