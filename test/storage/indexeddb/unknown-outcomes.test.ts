import 'fake-indexeddb/auto'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { conflicts } from '../../../src/storage/conformance/assert.ts'
import { NOW, seqNumsOf } from '../../../src/storage/conformance/blocks.ts'
import { LogWriter, WHOLE_LOG } from '../../../src/storage/conformance/log-writer.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { faultsLeft, injectFaults } from './faults.ts'

let databases = 0

async function openTwo(): Promise<[StorageSession, StorageSession]> {
  const name = `unknown-${databases++}`
  const open = async () => {
    const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
    onTestFinished(() => session.close())
    return session
  }
  return [await open(), await open()]
}

/** The next time that a database is opened, the browser refuses. */
function failNextOpen(name: string): void {
  const original = IDBFactory.prototype.open
  vi.spyOn(IDBFactory.prototype, 'open').mockImplementationOnce(function (
    this: IDBFactory,
    database: string,
  ) {
    // An older version than there is.
    const request = original.call(this, database, 1)
    Object.defineProperty(request, 'error', { get: () => new DOMException('refused', name), set() {} })
    return request
  })
}

afterEach(() => {
  injectFaults([])
  vi.restoreAllMocks()
})

describe('IndexedDB, when an attempt may have been made', () => {
  it.each([
    ['UnknownError', 'io'],
    ['QuotaExceededError', 'quota'],
    ['VersionError', 'blocked'],
  ])(
    'and the database cannot be opened again (%s), nobody is told that nothing was written',
    async (error, kind) => {
      const [session] = await openTwo()
      const writers = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
      injectFaults(['lose-answer'])
      failNextOpen(error)
      const outcomes = await Promise.allSettled(writers.map((writer) => writer.append()))
      const unknown = { status: 'rejected', reason: { kind, nothingWritten: false } }
      expect(outcomes).toMatchObject([unknown, unknown])
      for (const writer of writers) expect(await session.head(writer.logId)).toEqual(writer.head)
    },
  )

  it('and a commit meets the same, its outcome is as unknown', async () => {
    const [session] = await openTwo()
    injectFaults(['lose-answer'])
    failNextOpen('UnknownError')
    const committed = session.commit([{ kind: 'put', collection: 'streams', key: 'a', value: 1 }])
    await expect(committed).rejects.toMatchObject({ kind: 'io', nothingWritten: false })
    expect(await session.get('streams', 'a')).toMatchObject({ value: 1 })
  })

  it('an append whose transaction could not even begin, and that another tab came before, conflicts', async () => {
    const [session, rival] = await openTwo()
    const writer = await LogWriter.create(session, 'a')
    await writer.append()
    await new LogWriter(rival, 'a', writer.head).append()
    injectFaults(['close'])
    await conflicts(writer.append(), 'append at 1')
    expect(faultsLeft()).toBe(0)
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0, 1])
  })

  it('an append that was undone is made again, though another tab freed blocks meanwhile', async () => {
    const [session, rival] = await openTwo()
    const writer = await LogWriter.create(session, 'a')
    await writer.append({ expiresAt: NOW })
    injectFaults(['abort'])
    const appended = writer.append()
    // Its transaction comes between the two attempts.
    while (faultsLeft() > 0) await Promise.resolve()
    const reclaimed = rival.reclaim({ now: NOW, trimmedBefore: 0, blocksMax: 10 })
    await appended
    expect(await reclaimed).toMatchObject({ logIds: ['a'] })
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([1])
  })
})
