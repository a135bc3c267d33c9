import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { NOW, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { limitSpace } from './faults.ts'

const FULL = { kind: 'quota', nothingWritten: true }
/** Less than the reserve, but enough for a few small appends. */
const NARROW = 100_000

let databases = 0

async function openSession(): Promise<{
  session: StorageSession
  reserve: () => Promise<number | undefined>
}> {
  const name = `quota-${databases++}`
  const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
  const db = await openDB(name)
  onTestFinished(async () => {
    db.close()
    await session.close()
  })
  const reserve = async () => (await db.get('reserve', 'bytes'))?.length
  expect(await reserve()).toBeGreaterThan(NARROW)
  return { session, reserve }
}

afterEach(() => limitSpace(undefined))

describe('little space', () => {
  it('rejects a large append, but not the small ones in its transaction', async () => {
    const { session } = await openSession()
    const [a, b, c] = [
      await LogWriter.create(session, 'a'),
      await LogWriter.create(session, 'b'),
      await LogWriter.create(session, 'c'),
    ]
    limitSpace(NARROW)
    const large = b.append({ bodyBytes: 2 * NARROW })
    const small = Promise.all([a.append(), c.append(), c.append()])
    await expect(large).rejects.toMatchObject(FULL)
    await small
    expect(await session.head('a')).toEqual(a.head)
    expect(await session.head('c')).toEqual(c.head)
    expect(await session.read('b', WHOLE_LOG)).toEqual([])
  })

  it('accepts appends before a large one to the same log, and rejects those after it', async () => {
    const { session } = await openSession()
    const writer = await LogWriter.create(session, 'a')
    limitSpace(NARROW)
    const outcomes = await Promise.allSettled([
      writer.append(),
      writer.append({ bodyBytes: 2 * NARROW }),
      writer.append(),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0])
  })

  it('a trim uses the reserve, and other appends fail until it is restored', async () => {
    const { session, reserve } = await openSession()
    const writer = await LogWriter.create(session, 'a')
    await writer.append()
    const before = writer.head
    limitSpace(0)
    await expect(writer.append()).rejects.toMatchObject(FULL)
    expect(await reserve()).toBeDefined()

    const trimming = new LogWriter(session, 'a', before)
    const request = trimming.request({ trimPoint: 1, trimmedAt: before.appendedAt + 1 })
    expect(request.head.trims.at(-1)!.at).toBe(request.head.appendedAt)
    await expect(session.append(request)).rejects.toMatchObject(FULL)
    expect(await reserve()).toBeUndefined()

    limitSpace(NARROW)
    await expect(new LogWriter(session, 'a', before).append()).rejects.toMatchObject(FULL)
    await session.append(request)
    expect(await session.head('a')).toEqual(request.head)

    limitSpace(undefined)
    await new LogWriter(session, 'a', request.head).append()
    expect(await reserve()).toBeDefined()
  })

  it('deletions and reclaiming use the reserve, and the next write restores it', async () => {
    const { session, reserve } = await openSession()
    const [writer, other] = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
    await writer.append({ expiresAt: NOW })
    await writer.append()
    limitSpace(5)
    const put = { kind: 'put', collection: 'streams', key: 'a', value: 1 } as const
    await expect(session.commit([put])).rejects.toMatchObject(FULL)
    expect(await reserve()).toBeDefined()
    // It takes a little space itself.
    limitSpace(0)
    await expect(session.commit([{ kind: 'delete-log', logId: 'b' }])).rejects.toMatchObject(FULL)
    expect(await reserve()).toBeUndefined()
    const limits = { now: NOW, trimmedBefore: 0, blocksMax: 9 }
    await expect(session.reclaim(limits)).rejects.toMatchObject(FULL)
    limitSpace(NARROW)
    await session.commit([{ kind: 'delete-log', logId: 'b' }])
    await session.reclaim(limits)
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([1])
    await expect(session.commit([put])).rejects.toMatchObject(FULL)
    limitSpace(undefined)
    await session.commit([put])
    expect(await reserve()).toBeDefined()
    expect(await session.head('b')).toBeUndefined()
    await expect(other.append()).rejects.toMatchObject({ name: 'StorageConflict' })
  })
})
