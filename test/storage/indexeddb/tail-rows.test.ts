import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { conflicts } from '../../../adapters/conformance/harness.ts'
import { FAR, LogWriter, NOW, range, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import type { Schema } from '../../../adapters/storage/indexeddb/schema.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { keysOf, tailRowsOf } from './tail-rows.ts'

let databases = 0

async function openTwo() {
  const name = `small-${databases++}`
  const open = async () => {
    const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
    onTestFinished(() => session.close())
    return session
  }
  const sessions: [StorageSession, StorageSession] = [await open(), await open()]
  const db = await openDB<Schema>(name)
  onTestFinished(() => db.close())
  return { sessions, db }
}

/** Records the object stores of each write transaction. */
function watchWrites(): string[][] {
  const writes: string[][] = []
  const original = IDBDatabase.prototype.transaction
  vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (this: IDBDatabase, ...args) {
    const stores = [args[0]].flat().map(String)
    if (args[1] === 'readwrite' && !stores.includes('reserve')) writes.push(stores)
    return original.apply(this, args)
  })
  return writes
}

afterEach(() => {
  vi.restoreAllMocks()
})

async function records(session: StorageSession, from = 0): Promise<number[]> {
  const blocks = await session.read('a', { ...WHOLE_LOG, from: { seqNum: from } })
  return seqNumsOf(blocks).filter((seqNum) => seqNum >= from)
}

describe('a small append', () => {
  it('to a cached log adds one tail row and writes nothing else', async () => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    await writer.append()
    const row = await db.get('logs', 'a')
    const writes = watchWrites()
    for (let i = 0; i < 10; i++) await writer.append({ count: 2 })
    expect(writes).toEqual(Array.from({ length: 10 }, () => ['appends']))
    expect(await db.get('logs', 'a')).toEqual(row)
    for (const session of sessions) {
      expect(await session.head('a')).toEqual(writer.head)
      for (const from of [0, 1, 2, 15, 16, 20, 21]) {
        expect(await records(session, from)).toEqual(range(from, 21))
      }
      const fromTime = await session.read('a', { ...WHOLE_LOG, from: { timestamp: NOW + 10 } })
      expect(seqNumsOf(fromTime)[0]).toBe(9)
      const few = await session.read('a', { ...WHOLE_LOG, from: { seqNum: 4 }, recordsMax: 3 })
      expect(seqNumsOf(few)).toEqual([3, 4, 5, 6])
      const metered = writer.written.reduce((sum, { block }) => sum + block.meteredBytes, 0)
      expect(await session.measure(['a'])).toEqual([metered])
    }
  })

  it('after too many tail rows moves all of them to a page', async () => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    let most = 0
    for (let i = 0; i < 250; i++) {
      await writer.append()
      most = Math.max(most, await db.count('appends'))
    }
    expect(most).toBe(101)
    const pages = await db.getAll('pages')
    expect(pages.map(({ numbers }) => numbers.length / 7)).toEqual([101, 101])
    expect(await db.count('appends')).toBe(1 + 48)
    expect(await records(sessions[1])).toEqual(range(0, 250))
    expect(await sessions[1].head('a')).toEqual(writer.head)
  })

  it('that exceeds the size limit of tail rows moves all of them to one page', async () => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    for (let i = 0; i < 60; i++) await writer.append({ bodyBytes: 1_500 })
    const pages = await db.getAll('pages')
    expect(pages.length).toBeGreaterThan(1)
    for (const { data, parts } of pages) {
      expect(parts).toBe(0)
      expect(data.length).toBeLessThan(48 * 1024)
    }
    expect(await records(sessions[1])).toEqual(range(0, 60))
  })

  it.each([
    ['is large', { bodyBytes: 2_048 }],
    ['is of many records', { count: 17 }],
  ])('does not include one that %s, which replaces the log row', async (_, spec) => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    for (let i = 0; i < 3; i++) await writer.append()
    const before = (await db.get('logs', 'a'))!
    await writer.append(spec)
    const after = (await db.get('logs', 'a'))!
    expect(after.revision).toBe(before.revision + 1)
    expect(after.head).toEqual(writer.head)
    expect(await tailRowsOf(db, 'a')).toEqual([])
    await writer.append()
    expect(await sessions[1].head('a')).toEqual(writer.head)
    const count = writer.written.reduce((sum, { block }) => sum + block.endSeqNum - block.firstSeqNum, 0)
    expect(await records(sessions[1])).toEqual(range(0, count))
  })

  it('can be a fence', async () => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    await writer.append()
    const row = await db.get('logs', 'a')
    await writer.append({ fencingToken: 'token' })
    await writer.append()
    expect(await db.get('logs', 'a')).toEqual(row)
    expect((await sessions[1].head('a'))!.fencingToken).toBe('token')
    expect(await sessions[1].head('a')).toEqual(writer.head)
  })

  it.each([
    ['that trims', { trimPoint: 1, trimmedAt: NOW + 7 }, ['trimmed', NOW + 7, 'a']],
    ['that expires before the chore is due', { expiresAt: NOW + 5 }, ['expired', NOW + 5, 'a']],
  ])('%s adds a chore and writes nothing else to the log row', async (_, spec, chore) => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    await writer.append({ expiresAt: FAR })
    await writer.append({ expiresAt: FAR + 1 })
    await writer.append()
    const before = (await db.get('logs', 'a'))!
    const kept = await tailRowsOf(db, 'a')
    await writer.append(spec)
    expect(await db.getAllKeys('chores')).toContainEqual(chore)
    const { expiryChoreAt, trimChoreAt, ...after } = (await db.get('logs', 'a'))!
    expect([expiryChoreAt, trimChoreAt]).toContain(chore[1])
    expect({ ...after, expiryChoreAt: FAR }).toEqual(before)
    expect((await tailRowsOf(db, 'a')).slice(0, -1)).toEqual(kept)
    expect(await sessions[1].head('a')).toEqual(writer.head)
    const writes = watchWrites()
    await writer.append({ expiresAt: FAR })
    expect(writes).toEqual([['appends']])
    expect(await db.count('pages')).toBe(0)
  })

  it('to each of several cached logs reads only whether their state is current', async () => {
    const { sessions, db } = await openTwo()
    const [first, second] = sessions
    const writers = await Promise.all(['a', 'b', 'c'].map((logId) => LogWriter.create(first, logId)))
    for (let i = 0; i < 3; i++) await Promise.all(writers.map((writer) => writer.append()))
    const getAll = vi.spyOn(IDBObjectStore.prototype, 'getAll')
    await Promise.all(writers.map((writer) => writer.append()))
    expect(getAll).not.toHaveBeenCalled()
    // The cached state of two logs is stale.
    const [a, b, c] = writers as [LogWriter, LogWriter, LogWriter]
    const theirs = new LogWriter(second, 'a', a.head)
    await theirs.append()
    await second.commit([{ kind: 'set-epoch', logId: 'b', epoch: 2 }])
    const outcomes = await Promise.allSettled([a.append(), b.append(), c.append()])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
    expect(await second.head('a')).toEqual(theirs.head)
    expect(await second.head('c')).toEqual(c.head)
    const tails = await Promise.all(['a', 'b', 'c'].map(async (id) => (await second.head(id))!.tail.seqNum))
    expect(tails).toEqual([5, 4, 5])
    expect(seqNumsOf(await second.read('c', WHOLE_LOG))).toEqual(range(0, 5))
    const { revision } = (await db.get('logs', 'b'))!
    for (const { key, row } of await tailRowsOf(db, 'b'))
      expect([key[2], row.revision]).toEqual([revision, revision])
    expect(await first.head('b')).toEqual({ ...(await second.head('b')), epoch: 2 })
  })

  it('is reclaimed after it expired or was trimmed', async () => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    for (let i = 0; i < 10; i++) await writer.append({ expiresAt: NOW + 1_000 + i })
    expect(await db.count('appends')).toBeGreaterThan(5)
    const limits = { now: NOW + 1_002, trimmedBefore: 0, blocksMax: 100 }
    expect(await sessions[1].reclaim(limits)).toEqual({ more: false, logIds: ['a'] })
    expect(await records(sessions[0])).toEqual(range(3, 10))
    await writer.append({ expiresAt: NOW + 2_000 })
    await writer.append({ expiresAt: NOW + 2_001, trimPoint: 6, trimmedAt: NOW + 5 })
    await writer.append({ expiresAt: NOW + 2_002 })
    const later = { now: 0, trimmedBefore: NOW + 5, blocksMax: 100 }
    expect(await sessions[1].reclaim(later)).toEqual({ more: false, logIds: ['a'] })
    expect(await records(sessions[0])).toEqual(range(6, 13))
    expect(await sessions[0].head('a')).toEqual(writer.head)
    const left = writer.written.slice(6).reduce((sum, { block }) => sum + block.meteredBytes, 0)
    expect(await sessions[0].measure(['a'])).toEqual([left])
  })

  it('that remains after earlier ones were reclaimed moves to a page, so that the log row stays small', async () => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    for (let i = 0; i < 30; i++) await writer.append({ bodyBytes: 300, expiresAt: NOW + i })
    await sessions[1].reclaim({ now: NOW + 4, trimmedBefore: 0, blocksMax: 100 })
    expect((await db.get('logs', 'a'))!.tail.data).toHaveLength(0)
    expect(await tailRowsOf(db, 'a')).toEqual([])
    expect(await db.count('pages')).toBe(1)
    expect(await records(sessions[0])).toEqual(range(5, 30))
    expect(await sessions[0].head('a')).toEqual(writer.head)
    // Expired pages need no chore.
    expect(await db.getAllKeys('chores')).toEqual([])
    await sessions[1].reclaim({ now: NOW + 30, trimmedBefore: 0, blocksMax: 100 })
    expect(await db.count('pages')).toBe(0)
    expect(await sessions[0].measure(['a'])).toEqual([0])
  })
})

describe('two sessions that have cached a log', () => {
  it('conflict if both append, however each of them writes', async () => {
    const { sessions } = await openTwo()
    const [first, second] = sessions
    let ours = await LogWriter.create(first, 'a')
    for (const spec of [{}, { bodyBytes: 3_000 }, { fencingToken: 'x' }, { count: 20 }, {}, {}]) {
      await ours.append()
      const theirs = new LogWriter(second, 'a', ours.head)
      await theirs.append(spec)
      await conflicts(ours.append(), 'an append behind another')
      expect(await first.head('a')).toEqual(theirs.head)
      ours = new LogWriter(first, 'a', theirs.head)
    }
    await ours.append()
    expect(await second.head('a')).toEqual(ours.head)
    expect(await records(second)).toEqual(range(0, ours.head.tail.seqNum))
  })

  it('conflict if one has replaced the log row, and leave no stale tail row', async () => {
    const { sessions, db } = await openTwo()
    const [first, second] = sessions
    const writer = await LogWriter.create(first, 'a')
    await writer.append()
    await second.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }])
    const replaced = await second.head('a')
    await conflicts(writer.append(), 'an append under the epoch before')
    const { revision } = (await db.get('logs', 'a'))!
    expect((await tailRowsOf(db, 'a')).map(({ key }) => key)).toEqual([['a', 0, revision]])
    expect(await second.head('a')).toEqual(replaced)
    expect(replaced?.epoch).toBe(2)
    expect(await records(first)).toEqual([0])
  })

  it('do not conflict if one has replaced the log row without an append', async () => {
    const { sessions, db } = await openTwo()
    const [first, second] = sessions
    const writer = await LogWriter.create(first, 'a')
    for (let i = 0; i < 3; i++) await writer.append({ expiresAt: NOW + i })
    await second.reclaim({ now: NOW + 1, trimmedBefore: 0, blocksMax: 100 })
    await writer.append({ expiresAt: FAR })
    await writer.append({ expiresAt: FAR })
    expect(await second.head('a')).toEqual(writer.head)
    expect(await records(second)).toEqual([2, 3, 4])
    const revisions = new Set((await db.getAll('appends')).map(({ revision }) => revision))
    expect([...revisions]).toEqual([(await db.get('logs', 'a'))!.revision])
  })

  it('conflict if one has deleted the log, or created another with its id', async () => {
    const { sessions, db } = await openTwo()
    const [first, second] = sessions
    const writer = await LogWriter.create(first, 'a')
    for (let i = 0; i < 3; i++) await writer.append()
    const { head } = writer
    await second.commit([{ kind: 'delete-log', logId: 'a' }])
    expect(await db.count('appends')).toBe(0)
    await conflicts(writer.append(), 'an append to a log that is gone')
    expect(await db.count('appends')).toBe(0)

    await second.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 100 })
    const again = await LogWriter.create(second, 'a')
    await conflicts(new LogWriter(first, 'a', head).append(), 'an append to a recreated log')
    for (let i = 0; i < 5; i++) await again.append()
    expect(await first.head('a')).toEqual(again.head)
    expect(await records(first)).toEqual(range(0, 5))
  })
})

describe('a stale tail row', () => {
  it('is ignored by reads, and deleted when the log row is replaced', async () => {
    const { sessions, db } = await openTwo()
    const writer = await LogWriter.create(sessions[0], 'a')
    for (let i = 0; i < 3; i++) await writer.append()
    const [, some] = await db.getAll('appends', keysOf('a'))
    const { revision } = (await db.get('logs', 'a'))!
    for (const seqNum of [0, 2, 3, 90]) {
      await db.put('appends', { ...some!, revision: revision - 1 }, ['a', seqNum, revision - 1])
    }
    expect(await sessions[1].head('a')).toEqual(writer.head)
    expect(await records(sessions[1])).toEqual([0, 1, 2])
    const metered = writer.written.reduce((sum, { block }) => sum + block.meteredBytes, 0)
    expect(await sessions[1].measure(['a'])).toEqual([metered])
    await writer.append()
    expect(await records(sessions[1])).toEqual([0, 1, 2, 3])
    await writer.append({ bodyBytes: 3_000 })
    expect(await db.count('appends')).toBe(1)

    await sessions[0].commit([{ kind: 'delete-log', logId: 'a' }])
    await db.put('appends', { ...some!, revision }, ['a', 5, revision])
    await sessions[0].reclaim({ now: 0, trimmedBefore: 0, blocksMax: 100 })
    expect(await db.count('appends')).toBe(0)
  })

  it('is not attributed to a new log with the same id', async () => {
    const { sessions, db } = await openTwo()
    const [session] = sessions
    const writer = await LogWriter.create(session, 'a')
    for (let i = 0; i < 3; i++) await writer.append()
    const old = await tailRowsOf(db, 'a')
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    await session.reclaim({ now: 0, trimmedBefore: 0, blocksMax: 100 })
    const again = await LogWriter.create(session, 'a')
    // Written by a tab that missed the deletion.
    for (const { key, row } of old) await db.put('appends', row, key)
    expect(await session.head('a')).toEqual(again.head)
    expect(await records(session)).toEqual([])
  })
})
