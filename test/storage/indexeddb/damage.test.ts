import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { describe, expect, it, onTestFinished } from 'vitest'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import type { Page } from '../../../adapters/storage/indexeddb/page.ts'
import type { PageRow } from '../../../adapters/storage/indexeddb/page-row.ts'
import type { PageKey, Schema } from '../../../adapters/storage/indexeddb/schema.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { FAR, NOW, seqNumsOf } from '../../../src/storage/conformance/blocks.ts'
import { LogWriter, WHOLE_LOG } from '../../../src/storage/conformance/log-writer.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { behindRowOf, keysOf } from './behind.ts'

/** Too large for the row of its log. */
const LARGE = 3_000
const CORRUPT = { kind: 'corrupt', nothingWritten: true }
const NUMBERS = 7

let databases = 0

async function openDamaged() {
  const name = `damaged-${databases++}`
  const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
  const db = await openDB<Schema>(name)
  onTestFinished(async () => {
    db.close()
    await session.close()
  })
  return {
    session,
    db,
    /** What is in the log's row and what is behind it. */
    async damageTail(logId: string, change: (tail: Page) => Partial<Page>): Promise<void> {
      const row = (await db.get('logs', logId))!
      const tail = row.tail.data.length === 0 ? row.tail : { ...row.tail, ...change(row.tail) }
      const behind = await behindRowOf(db, logId)
      // Whoever knows the log has to look at it again.
      const revision = row.revision + 1
      const transaction = db.transaction(['logs', 'appends'], 'readwrite')
      await transaction.objectStore('logs').put({ ...row, revision, tail }, logId)
      const appends = transaction.objectStore('appends')
      await appends.delete(keysOf(logId))
      for (const { key, row } of behind) {
        await appends.put({ ...row, ...change(row), revision }, [logId, key[1], revision])
      }
      await transaction.done
    },
    async damagePage(key: PageKey, change: (row: PageRow) => Partial<PageRow>): Promise<void> {
      const row = (await db.get('pages', key))!
      await db.put('pages', { ...row, ...change(row) }, key)
    },
  }
}

/** A row whose number at some place is another one. */
const withNumber = (index: number, value: number) => (row: PageRow) => ({
  numbers: row.numbers.with(index, value),
})

const cutTail = ({ data }: Page) => ({ data: data.slice(1) })

/** Until nothing more is left, or it fails. Returns the logs of which something was freed. */
async function reclaimAll(session: StorageSession, limits: { now?: number; trimmedBefore?: number }) {
  const freedOf = new Set<string>()
  for (let call = 1; ; call++) {
    expect(call).toBeLessThan(50)
    const reclaiming = session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 1_000, ...limits })
    const outcome = await reclaiming.catch((error: unknown) => ({ error }))
    if ('error' in outcome) return { freedOf: [...freedOf].sort(), error: outcome.error }
    for (const logId of outcome.logIds) freedOf.add(logId)
    if (!outcome.more) return { freedOf: [...freedOf].sort(), error: undefined }
  }
}

describe('what is damaged', () => {
  it('a log whose tail is damaged takes no appends and says why; one that shares its transaction does', async () => {
    const { session, damageTail } = await openDamaged()
    const [damaged, other] = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
    await Promise.all([damaged.append(), other.append()])
    await damageTail('a', cutTail)

    const outcomes = await Promise.allSettled([damaged.append(), other.append()])

    expect(outcomes).toMatchObject([{ reason: CORRUPT }, { status: 'fulfilled' }])
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
    expect(seqNumsOf(await session.read('b', WHOLE_LOG))).toEqual([0, 1])
  })

  it.each<[string, (row: PageRow) => Partial<PageRow>]>([
    ['a sequence number that is none', withNumber(0, Number.NaN)],
    ['a fraction of a sequence number', withNumber(0, 0.5)],
    ['a negative sequence number', withNumber(0, -1)],
    ['an end that is not behind its beginning', withNumber(1, 0)],
    ['a timestamp that is none', withNumber(2, Number.NaN)],
    ['a timestamp beyond what is exact', withNumber(3, 2 ** 53)],
    ['a fraction of a byte', withNumber(4, 1.5)],
    ['a negative size', withNumber(4, -1)],
    ['an expiry that is none', withNumber(5, Number.NaN)],
    ['the end of the data in the middle of a byte', withNumber(6, LARGE + 0.5)],
    ['a block that begins before the one in front of it ends', withNumber(NUMBERS, 0)],
    ['half a block', ({ numbers }) => ({ numbers: numbers.slice(0, NUMBERS + 3) })],
    ['no block', () => ({ numbers: new Float64Array(0) })],
    ['no numbers', () => ({ numbers: undefined as never })],
    ['a number of parts that is none', () => ({ parts: Number.NaN })],
    ['more parts than there can be', () => ({ parts: 2 ** 32 })],
  ])('a page with %s is told to whoever reads it', async (_, damage) => {
    const { session, damagePage } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    // In one row first, which becomes a page of two blocks.
    await writer.append()
    await writer.append({ bodyBytes: LARGE })
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0, 1])
    await damagePage(['a', 2], damage)
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
    const fromTime = { ...WHOLE_LOG, from: { timestamp: NOW } }
    await expect(session.read('a', fromTime)).rejects.toMatchObject(CORRUPT)
  })

  it.each<[string, number, number]>([
    ['a sequence number', 0, 0.5],
    ['a size', 4, Number.NaN],
  ])('a log whose row has %s that is none takes no appends', async (_, index, value) => {
    const { session, damageTail } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    await writer.append()
    await damageTail('a', ({ numbers }) => ({ numbers: numbers.with(index, value) }))
    await expect(writer.append()).rejects.toMatchObject(CORRUPT)
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
  })
})

describe('freeing, when something is damaged', () => {
  it.each<[string, (row: PageRow) => Partial<PageRow>]>([
    ['is cut short', ({ data }) => ({ data: data.slice(1) })],
    ['has a size that is none', withNumber(4, Number.NaN)],
    ['has nothing that expires', withNumber(5, FAR)],
    ['is not where it belongs', withNumber(NUMBERS + 1, 3)],
  ])(
    'a page that expires in part and %s is left and told; all others are freed before',
    async (_, damage) => {
      const { session, db, damagePage } = await openDamaged()
      const logIds = ['a', 'b', 'c']
      for (const logId of logIds) {
        const writer = await LogWriter.create(session, logId)
        await writer.append({ expiresAt: NOW })
        await writer.append({ bodyBytes: LARGE })
        await writer.append({ expiresAt: NOW })
      }
      await damagePage(['b', 2], damage)
      const before = await db.get('pages', ['b', 2])

      const { freedOf, error } = await reclaimAll(session, { now: NOW })

      expect(error).toMatchObject({ ...CORRUPT, message: expect.stringContaining('log b') })
      // Of the damaged one what is in the row of the log.
      expect(freedOf).toEqual(logIds)
      for (const logId of ['a', 'c']) expect(seqNumsOf(await session.read(logId, WHOLE_LOG))).toEqual([1])
      expect(await db.get('pages', ['b', 2])).toEqual(before)
      expect(await reclaimAll(session, { now: NOW })).toMatchObject({ freedOf: [], error: CORRUPT })
    },
  )

  it('more damaged pages than are read at once do not hide those behind them', async () => {
    const { session, damagePage } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 20; i++) await writer.append({ bodyBytes: LARGE, expiresAt: NOW + i })
    const behind = await LogWriter.create(session, 'b')
    await behind.append({ bodyBytes: LARGE, expiresAt: NOW + 20 })
    for (let end = 1; end <= 20; end++) await damagePage(['a', end], withNumber(0, Number.NaN))
    const { freedOf, error } = await reclaimAll(session, { now: FAR })
    expect(error).toMatchObject(CORRUPT)
    expect(freedOf).toEqual(['b'])
    expect(await session.read('b', WHOLE_LOG)).toEqual([])
  })

  it('what is damaged behind the row of a log keeps neither its pages nor another log from being freed', async () => {
    const { session, db, damageTail } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 70; i++) await writer.append({ bodyBytes: LARGE, expiresAt: NOW + i })
    for (let i = 0; i < 3; i++) await writer.append({ expiresAt: NOW })
    const other = await LogWriter.create(session, 'b')
    await other.append({ bodyBytes: LARGE, expiresAt: NOW + 70 })
    await other.append({ expiresAt: NOW })
    await damageTail('a', cutTail)
    const { freedOf, error } = await reclaimAll(session, { now: FAR })
    expect(error).toMatchObject(CORRUPT)
    expect(freedOf).toEqual(['a', 'b'])
    expect(await db.count('pages')).toBe(0)
    expect(await session.read('b', WHOLE_LOG)).toEqual([])
    expect((await session.head('a'))!.tail.seqNum).toBe(73)
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
    expect(await reclaimAll(session, { now: FAR })).toMatchObject({ freedOf: [], error: CORRUPT })
  })

  it('a log whose latest blocks are damaged takes another epoch, and can be deleted', async () => {
    const { session, db, damageTail } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 3; i++) await writer.append()
    await damageTail('a', cutTail)
    await session.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }])
    expect(await session.head('a')).toEqual({ ...writer.head, epoch: 2 })
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
    await session.commit([{ kind: 'delete-log', logId: 'a', expectSeqNum: 3 }])
    expect(await session.head('a')).toBeUndefined()
    expect(await db.count('appends')).toBe(0)
  })

  it('with nothing but damage within reach it is told, and does not go on for ever', async () => {
    const { session, damagePage } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 100; i++) await writer.append({ bodyBytes: LARGE, expiresAt: NOW })
    for (let end = 1; end <= 100; end++) await damagePage(['a', end], withNumber(0, Number.NaN))
    expect(await reclaimAll(session, { now: NOW })).toMatchObject({ freedOf: [], error: CORRUPT })
  })

  it('of a log that was trimmed, what is whole is freed, and what is damaged is told again each time', async () => {
    const { session, db, damagePage } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 5; i++) await writer.append({ bodyBytes: LARGE })
    await writer.append({ trimPoint: 5, trimmedAt: NOW })
    await damagePage(['a', 2], withNumber(4, 0.5))
    for (let time = 0; time < 2; time++) {
      expect(await reclaimAll(session, { trimmedBefore: NOW })).toMatchObject({ error: CORRUPT })
      expect(await db.getAllKeys('pages')).toEqual([['a', 2]])
    }
    await damagePage(['a', 2], withNumber(4, LARGE + 8))
    expect(await reclaimAll(session, { trimmedBefore: NOW })).toEqual({ freedOf: ['a'], error: undefined })
    expect(await db.count('pages')).toBe(0)
    expect(await reclaimAll(session, { trimmedBefore: NOW })).toEqual({ freedOf: [], error: undefined })
  })

  it('the pages of a log whose tail is damaged are freed, and the log stays listed', async () => {
    const { session, db, damageTail } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    await writer.append({ bodyBytes: LARGE, expiresAt: NOW })
    await writer.append({ expiresAt: NOW })
    const [behind] = await behindRowOf(db, 'a')
    const { numbers, data } = behind!.row
    await damageTail('a', cutTail)
    expect(await reclaimAll(session, { now: NOW })).toMatchObject({ freedOf: ['a'], error: CORRUPT })
    expect(await db.count('pages')).toBe(0)
    await damageTail('a', () => ({ numbers, data }))
    expect(await reclaimAll(session, { now: NOW })).toEqual({ freedOf: ['a'], error: undefined })
    expect(await session.measure(['a'])).toEqual([0])
    expect(await db.count('chores')).toBe(0)
  })
})
