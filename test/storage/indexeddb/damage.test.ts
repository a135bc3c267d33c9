import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { describe, expect, it, onTestFinished } from 'vitest'
import { NOW, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'

import type { PackedBlocks, PageKey, PageRow, Schema } from '../../../adapters/storage/indexeddb/schema.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { keysOf, tailRowsOf } from './tail-rows.ts'

/** Too large for a tail row. */
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
    /** Changes the tail of the log row, and all tail rows. */
    async damageTail(logId: string, change: (tail: PackedBlocks) => Partial<PackedBlocks>): Promise<void> {
      const row = (await db.get('logs', logId))!
      const tail = row.tail.data.length === 0 ? row.tail : { ...row.tail, ...change(row.tail) }
      const behind = await tailRowsOf(db, logId)
      // Invalidates the cached state of the session.
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

/** Replaces one number of a page. */
const withNumber = (index: number, value: number) => (row: PageRow) => ({
  numbers: row.numbers.with(index, value),
})

const cutTail = ({ data }: PackedBlocks) => ({ data: data.slice(1) })

/** Reclaims until nothing is left, or a call fails. Returns the logs with freed blocks. */
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

describe('a damaged log', () => {
  it('rejects appends if its tail is damaged, without affecting a log in the same transaction', async () => {
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
    ['NaN as a sequence number', withNumber(0, Number.NaN)],
    ['an end that is not after its beginning', withNumber(1, 0)],
    ['NaN as a timestamp', withNumber(2, Number.NaN)],
    ['a fractional size', withNumber(4, 1.5)],
    ['overlapping blocks', withNumber(NUMBERS, 0)],
    ['half a block', ({ numbers }) => ({ numbers: numbers.slice(0, NUMBERS + 3) })],
    ['missing numbers', () => ({ numbers: undefined as never })],
    ['too many parts', () => ({ parts: 2 ** 32 })],
  ])('rejects reads of a page with %s', async (_, damage) => {
    const { session, damagePage } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    // The second append turns the tail row of the first into a page of two blocks.
    await writer.append()
    await writer.append({ bodyBytes: LARGE })
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0, 1])
    await damagePage(['a', 2], damage)
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
    const fromTime = { ...WHOLE_LOG, from: { timestamp: NOW } }
    await expect(session.read('a', fromTime)).rejects.toMatchObject(CORRUPT)
  })

  it.each<[string, number, number]>([
    ['a fractional sequence number', 0, 0.5],
    ['NaN as a size', 4, Number.NaN],
  ])('rejects appends and reads if a tail row has %s', async (_, index, value) => {
    const { session, damageTail } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    await writer.append()
    await damageTail('a', ({ numbers }) => ({ numbers: numbers.with(index, value) }))
    await expect(writer.append()).rejects.toMatchObject(CORRUPT)
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject(CORRUPT)
  })
})

describe('reclaiming with damage', () => {
  it.each<[string, (row: PageRow) => Partial<PageRow>]>([
    ['has truncated data', ({ data }) => ({ data: data.slice(1) })],
    ['has the wrong key', withNumber(NUMBERS + 1, 3)],
  ])(
    'keeps a partly expired page that %s, frees all others, and then reports the damage',
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
      // For the damaged log, the block in its tail row.
      expect(freedOf).toEqual(logIds)
      for (const logId of ['a', 'c']) expect(seqNumsOf(await session.read(logId, WHOLE_LOG))).toEqual([1])
      expect(await db.get('pages', ['b', 2])).toEqual(before)
      expect(await reclaimAll(session, { now: NOW })).toMatchObject({ freedOf: [], error: CORRUPT })
    },
  )

  it('rejects and terminates if it finds nothing but damage', { tags: ['slow'] }, async () => {
    const { session, damagePage } = await openDamaged()
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 70; i++) await writer.append({ bodyBytes: LARGE, expiresAt: NOW })
    for (let end = 1; end <= 70; end++) await damagePage(['a', end], withNumber(0, Number.NaN))
    expect(await reclaimAll(session, { now: NOW })).toMatchObject({ freedOf: [], error: CORRUPT })
  })
})
