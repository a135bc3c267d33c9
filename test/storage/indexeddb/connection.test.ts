import 'fake-indexeddb/auto'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { conflicts } from '../../../adapters/conformance/assertions.ts'
import { checkRead, NOW, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
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
    ['lose-answer', 'lose-answer'],
    ['lose-answer', 'abort'],
    ['lose-answer', 'close'],
  ])(
    'an append with two faults (%s, %s) rejects with an unknown outcome, and is applied once',
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
    expect(await session.get('streams', 'a')).toMatchObject({ value: 1, version: 1 })
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

  it.each([1, 2, 3])('random faults lose and duplicate nothing (seed %i)', async (seed) => {
    const prng = new Prng(seed)
    const name = `lost-${databases++}`
    const sessions = [await openSession(name), await openSession(name)]
    await LogWriter.create(sessions[0]!, 'a')
    const outcomes = { made: new Set<string>(), unknown: new Set<string>(), refused: new Set<string>() }
    for (let round = 0; round < 20; round++) {
      const head = (await sessions[0]!.head('a'))!
      const attempts = sessions.flatMap((session, number) => {
        const writer = new LogWriter(session, 'a', head)
        return Array.from({ length: 1 + prng.below(3) }, (_, i) => {
          const tag = `${round}.${number}.${i}`
          return { tag, session, request: writer.request({ tag, count: 1 }) }
        })
      })
      injectFaults(attempts.map(() => prng.pick([undefined, undefined, ...ONCE])))
      await Promise.all(
        attempts.map(async ({ tag, session, request }) => {
          const outcome = await session.append(request).then(
            () => 'made' as const,
            (error) => {
              if (StorageConflict.is(error)) return 'refused' as const
              expect(StorageFailure.is(error)).toBe(true)
              return error.nothingWritten ? ('refused' as const) : ('unknown' as const)
            },
          )
          outcomes[outcome].add(tag)
        }),
      )
    }
    injectFaults([])
    const blocks = await sessions[1]!.read('a', WHOLE_LOG)
    const stored = blocks.map(
      ({ data }) => /(\d+\.\d+\.\d+)#/.exec(new TextDecoder('latin1').decode(data))![1]!,
    )
    expect(seqNumsOf(blocks)).toEqual(stored.map((_, index) => index))
    expect(new Set(stored).size).toBe(stored.length)
    for (const tag of outcomes.made) expect(stored).toContain(tag)
    for (const tag of stored) expect(outcomes.refused.has(tag)).toBe(false)
    expect(outcomes.made.size).toBeGreaterThan(10)
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
    // Older than the version of the database, so that it fails.
    const request = original.call(this, database, 1)
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

  it('is repeated after an abort, even if another tab reclaimed blocks in between', async () => {
    const [session, rival] = await openTwo()
    const writer = await LogWriter.create(session, 'a')
    await writer.append({ expiresAt: NOW })
    injectFaults(['abort'])
    const appended = writer.append()
    // Its transaction runs between the two attempts.
    while (faultsLeft() > 0) await Promise.resolve()
    const reclaimed = rival.reclaim({ now: NOW, trimmedBefore: 0, blocksMax: 10 })
    await appended
    expect(await reclaimed).toMatchObject({ logIds: ['a'] })
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([1])
  })
})
