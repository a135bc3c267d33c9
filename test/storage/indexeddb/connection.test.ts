import 'fake-indexeddb/auto'
import { openDB } from 'idb'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { conflicts } from '../../../adapters/conformance/assertions.ts'
import { checkRead, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { DATABASE_VERSION } from '../../../adapters/storage/indexeddb/connection.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open } from '../../../src/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type Fault, faultsLeft, injectFaults } from './faults.ts'

let databases = 0

async function openSession(name = `lost-${databases++}`): Promise<StorageSession> {
  const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
  onTestFinished(() => session.close())
  return session
}

afterEach(() => {
  injectFaults([])
  vi.restoreAllMocks()
})

/** Whether the state of the log is cached. */
const APPENDS_BEFORE = [0, 2]
const ONCE: readonly Fault[] = ['abort', 'close', 'lose-answer']

describe('a lost connection', () => {
  describe.each(APPENDS_BEFORE)('after %i appends', (before) => {
    it.each(ONCE)('an append with one fault (%s) is applied once', async (fault) => {
      const session = await openSession()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < before; i++) await writer.append()
      injectFaults([fault])
      await writer.append({ count: 3 })
      expect(faultsLeft()).toBe(0)
      await writer.append()
      expect(await session.head('a')).toEqual(writer.head)
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    })
  })

  it.each<[Fault, Fault]>([
    ['abort', 'lose-answer'],
    ['close', 'lose-answer'],
  ])(
    'an append whose second attempt is lost as well (%s, %s) has an unknown outcome, and is applied once',
    async (...both) => {
      const session = await openSession()
      const writer = await LogWriter.create(session, 'a')
      injectFaults(both)
      await expect(writer.append()).rejects.toMatchObject({ kind: 'io', nothingWritten: false })
      expect(await session.head('a')).toEqual(writer.head)
      await writer.append()
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  )

  it('an append that is aborted twice rejects, and the next one succeeds', async () => {
    const session = await openSession()
    const writer = await LogWriter.create(session, 'a')
    const { head } = writer
    injectFaults(['abort', 'abort'])
    await expect(writer.append()).rejects.toSatisfy(StorageFailure.is)
    expect(await session.head('a')).toEqual(head)
    await new LogWriter(session, 'a', head).append()
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0])
  })

  it('an append has an unknown outcome if another writer appended before it was resolved', async () => {
    const [session, rival] = await openTwo()
    const writer = await LogWriter.create(session, 'a')
    injectFaults(['lose-answer'])
    const request = writer.request()
    const appended = session.append(request)
    // Runs between the two attempts.
    const overtaken = new LogWriter(rival, 'a', request.head).append()
    await expect(appended).rejects.toMatchObject({ kind: 'io', nothingWritten: false })
    await overtaken
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0, 1])
  })

  it.each(ONCE)('a conflict is still one after a fault (%s)', async (fault) => {
    const session = await openSession()
    const { head } = await LogWriter.create(session, 'a')
    const writer = new LogWriter(session, 'a', head)
    await writer.append()
    injectFaults([fault])
    await conflicts(new LogWriter(session, 'a', head).append(), 'append at 0')
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0])
  })

  it.each(ONCE)('a commit with one fault (%s) is applied once', async (fault) => {
    const session = await openSession()
    injectFaults([fault])
    await session.commit([
      { kind: 'put', collection: 'streams', key: 'a', value: 1, expect: null },
      { kind: 'create-log', logId: 'a', epoch: 1, createdAt: 0 },
    ])
    expect(await session.get('streams', 'a')).toMatchObject({ value: 1 })
    expect(await session.head('a')).toMatchObject({ epoch: 1 })
  })

  it.each<Fault>(['abort', 'close'])('reads are repeated after a fault (%s)', async (fault) => {
    const session = await openSession()
    const writer = await LogWriter.create(session, 'a')
    await writer.append({ count: 2 })
    const reads = [
      () => session.get('streams', 'a'),
      () => session.list('streams', { prefix: '', after: '', limit: 1 }),
      () => session.head('a'),
      () => session.read('a', WHOLE_LOG),
      () => session.measure(['a']),
    ]
    for (const read of reads) {
      const undisturbed = await read()
      injectFaults([fault], 'readonly')
      expect(await read()).toEqual(undisturbed)
      expect(faultsLeft()).toBe(0)
    }
    injectFaults(['close', 'close'], 'readonly')
    await expect(session.head('a')).rejects.toMatchObject({ kind: 'io' })
    expect(await session.head('a')).toEqual(writer.head)
  })

  it.each(ONCE)('reclaiming with a fault (%s) frees as much as without', async (fault) => {
    const session = await openSession()
    const writer = await LogWriter.create(session, 'a')
    await writer.append({ expiresAt: 5 })
    await writer.append()
    injectFaults([fault])
    await session.reclaim({ now: 10, trimmedBefore: 0, blocksMax: 10 })
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([1])
    const [block] = await session.read('a', WHOLE_LOG)
    expect(await session.measure(['a'])).toEqual([block!.meteredBytes])
  })
})

async function openTwo(): Promise<[StorageSession, StorageSession]> {
  const name = `lost-${databases++}`
  return [await openSession(name), await openSession(name)]
}

/** Makes the next attempt to open a database fail. */
function failNextOpen(name: string): void {
  const original = IDBFactory.prototype.open
  vi.spyOn(IDBFactory.prototype, 'open').mockImplementationOnce(function (
    this: IDBFactory,
    database: string,
  ) {
    // The upgrade of another database, which is aborted.
    const request = original.call(this, `${database}, not opened`, DATABASE_VERSION)
    request.addEventListener('upgradeneeded', () => request.transaction!.abort())
    Object.defineProperty(request, 'error', { get: () => new DOMException('refused', name), set() {} })
    return request
  })
}

describe('an attempt that may have succeeded', () => {
  it.each([
    ['UnknownError', 'io'],
    ['QuotaExceededError', 'quota'],
    ['VersionError', 'upgraded'],
  ])('leaves the outcome of appends unknown if the database cannot be reopened (%s)', async (error, kind) => {
    const [session] = await openTwo()
    const writers = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
    injectFaults(['lose-answer'])
    failNextOpen(error)
    const outcomes = await Promise.allSettled(writers.map((writer) => writer.append()))
    const unknown = { status: 'rejected', reason: { kind, nothingWritten: false } }
    expect(outcomes).toMatchObject([unknown, unknown])
    for (const writer of writers) expect(await session.head(writer.logId)).toEqual(writer.head)
  })
})

/** Deletes a database. Rejects if another connection blocks it. */
function remove(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name)
    request.onsuccess = () => resolve()
    request.onblocked = () => reject(new Error('blocked'))
  })
}

describe('another version of the database', () => {
  const NEWER = { kind: 'upgraded', nothingWritten: true, message: expect.stringContaining('newer version') }
  const context = { clock: systemClock, onLogChanged: () => {} }

  it('opening rejects if a newer version has upgraded the database', async () => {
    const newer = await openDB('newer', DATABASE_VERSION + 1)
    onTestFinished(() => newer.close())
    await expect(indexedDb('newer').open(context)).rejects.toMatchObject({ name: 'StorageFailure', ...NEWER })
  })

  it('a session does not block an upgrade, and explains why later calls fail', async () => {
    const session = await openSession('given up')
    const writer = await LogWriter.create(session, 'a')
    const newer = await openDB('given up', DATABASE_VERSION + 1)
    onTestFinished(() => newer.close())
    const calls = [() => session.get('streams', 'a'), () => session.head('a'), () => writer.append()]
    for (const call of calls) await expect(call()).rejects.toMatchObject(NEWER)
  })

  it('an engine with old code says so after an upgrade, and its followers end with it', async () => {
    const clock = virtualClock()
    const hw = await open({ storage: indexedDb('outdated'), clock, onBackgroundError: () => {} })
    onTestFinished(() => hw.close().catch(() => {}))
    const stream = hw.basin('basin').stream('stream')
    await stream.append('before')
    const batches = stream.follow({ seqNum: 0 }).batches()
    await batches.next()
    const next = batches.next()
    const newer = await openDB('outdated', DATABASE_VERSION + 1)
    onTestFinished(() => newer.close())
    const upgraded = { code: 'storage_upgraded', message: expect.stringContaining('reload the page') }
    await expect(next).rejects.toMatchObject(upgraded)
    await expect(stream.append('after')).rejects.toMatchObject(upgraded)
    await expect(stream.readBatch()).rejects.toMatchObject(upgraded)
    await expect(open({ storage: indexedDb('outdated'), clock })).rejects.toMatchObject(upgraded)
  })

  it.each([1, 5])(
    'opening rejects if an earlier preview made the database (%i), which stays as it was',
    async (version) => {
      const name = `preview ${version}`
      const preview = await openDB(name, version, { upgrade: (db) => void db.createObjectStore('entries') })
      await preview.put('entries', 'kept', 'key')
      preview.close()
      await expect(open({ storage: indexedDb(name) })).rejects.toMatchObject({
        code: 'storage',
        message: expect.stringContaining(`indexedDB.deleteDatabase("${name}")`),
        cause: { kind: 'blocked', nothingWritten: true },
      })
      const kept = await openDB(name, version)
      expect(await kept.get('entries', 'key')).toBe('kept')
      kept.close()
      await remove(name)
      await openSession(name)
    },
  )

  it('a session does not block the deletion of the database, and continues with an empty one', async () => {
    const session = await openSession('deleted')
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1 }])
    await remove('deleted')
    expect(await session.get('streams', 'a')).toBeUndefined()
    await session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 2 }])
    expect(await session.get('streams', 'a')).toMatchObject({ value: 2 })
  })

  it('opening rejects after 10 s if another tab blocks it, and keeps no connection that comes later', async () => {
    const blocking = await openDB('blocked', DATABASE_VERSION)
    const removed = remove('blocked').catch(() => {})
    const clock = virtualClock()
    const opening = indexedDb('blocked').open({ ...context, clock })
    const outcome = expect(opening).rejects.toMatchObject({
      kind: 'blocked',
      nothingWritten: true,
      message: expect.stringContaining('keeps it open'),
    })
    await clock.advance('10s')
    await outcome
    blocking.close()
    await removed
    await remove('blocked')
    await openSession('blocked')
  })
})
