import 'fake-indexeddb/auto'
import { forceCloseDatabase } from 'fake-indexeddb'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { conflicts } from '../../../src/storage/conformance/assert.ts'
import { seqNumsOf } from '../../../src/storage/conformance/blocks.ts'
import { LogWriter, WHOLE_LOG } from '../../../src/storage/conformance/log-writer.ts'
import { Prng } from '../../../src/storage/conformance/prng.ts'
import { checkRead } from '../../../src/storage/conformance/read-oracle.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { type Fault, faultsLeft, injectFaults } from './faults.ts'

let databases = 0

async function openSession(name = `lost-${databases++}`): Promise<StorageSession> {
  const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
  onTestFinished(() => session.close())
  return session
}

afterEach(() => injectFaults([]))

/** With a row that is known to the writer, and with one that is not. */
const APPENDS_BEFORE = [0, 2]
const ONCE: readonly Fault[] = ['abort', 'close', 'lose-answer']

describe('IndexedDB, when its connection is lost', () => {
  describe.each(APPENDS_BEFORE)('after %i appends', (before) => {
    it.each(ONCE)('an append meets %s once, and is made once', async (fault) => {
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

    it.each(ONCE)('appends that share a transaction meet %s', async (fault) => {
      const session = await openSession()
      const writers = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
      for (let i = 0; i < before; i++) for (const writer of writers) await writer.append()
      injectFaults([fault])
      await Promise.all([0, 1, 2].flatMap(() => writers.map((writer) => writer.append({ count: 2 }))))
      for (const writer of writers) {
        checkRead(writer.written, WHOLE_LOG, await session.read(writer.logId, WHOLE_LOG))
        expect(await session.head(writer.logId)).toEqual(writer.head)
      }
    })
  })

  it.each<[Fault, Fault]>([
    ['lose-answer', 'lose-answer'],
    ['lose-answer', 'abort'],
    ['lose-answer', 'close'],
  ])('an append meets %s and then %s: it fails, of unknown outcome, and is made once', async (...both) => {
    const session = await openSession()
    const writer = await LogWriter.create(session, 'a')
    injectFaults(both)
    await expect(writer.append()).rejects.toMatchObject({ kind: 'io', nothingWritten: false })
    expect(await session.head('a')).toEqual(writer.head)
    await writer.append()
    checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
  })

  it('a connection that the browser says to be closed is not tried first, so that another may be lost, too', async () => {
    const open = vi.spyOn(indexedDB, 'open')
    onTestFinished(() => open.mockRestore())
    const session = await openSession()
    const writer = await LogWriter.create(session, 'a')
    await writer.append()
    const connection = open.mock.results[0]!.value.result
    const closed = new Promise((resolve) => connection.addEventListener('close', resolve))
    forceCloseDatabase(connection)
    await closed
    // What is tried on the closed connection would take the first.
    injectFaults([undefined, 'abort'])
    await writer.append()
    checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
  })

  it('an append that is aborted twice fails, and the next is made', async () => {
    const session = await openSession()
    const writer = await LogWriter.create(session, 'a')
    const { head } = writer
    injectFaults(['abort', 'abort'])
    await expect(writer.append()).rejects.toSatisfy(StorageFailure.is)
    expect(await session.head('a')).toEqual(head)
    await new LogWriter(session, 'a', head).append()
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0])
  })

  it('an append that was made and overtaken before that was known has an unknown outcome', async () => {
    const name = `lost-${databases++}`
    const [session, rival] = [await openSession(name), await openSession(name)]
    const writer = await LogWriter.create(session, 'a')
    injectFaults(['lose-answer'])
    const request = writer.request()
    const appended = session.append(request)
    // Waits for the first attempt, and comes before the second.
    const overtaken = new LogWriter(rival, 'a', request.head).append()
    await expect(appended).rejects.toMatchObject({ kind: 'io', nothingWritten: false })
    await overtaken
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0, 1])
  })

  it.each(ONCE)('a conflict stays one when its transaction meets %s', async (fault) => {
    const session = await openSession()
    const { head } = await LogWriter.create(session, 'a')
    const writer = new LogWriter(session, 'a', head)
    await writer.append()
    injectFaults([fault])
    await conflicts(new LogWriter(session, 'a', head).append(), 'append at 0')
    expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([0])
  })

  it.each(ONCE)('a commit meets %s, and is made once', async (fault) => {
    const session = await openSession()
    injectFaults([fault])
    await session.commit([
      { kind: 'put', collection: 'streams', key: 'a', value: 1, expect: null },
      { kind: 'create-log', logId: 'a', epoch: 1, createdAt: 0 },
    ])
    expect(await session.get('streams', 'a')).toMatchObject({ value: 1, version: 1 })
    expect(await session.head('a')).toMatchObject({ epoch: 1 })
  })

  it('a commit that was made and overtaken before that was known has an unknown outcome', async () => {
    const name = `lost-${databases++}`
    const [session, rival] = [await openSession(name), await openSession(name)]
    const put = { kind: 'put', collection: 'streams', key: 'a', value: 1 } as const
    injectFaults(['lose-answer'])
    const committed = session.commit([put])
    const overtaken = rival.commit([{ ...put, key: 'b' }])
    await expect(committed).rejects.toMatchObject({ kind: 'io', nothingWritten: false })
    await overtaken
  })

  it.each<Fault>(['abort', 'close'])('reads meet %s once, and are made again', async (fault) => {
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

  it('reclaiming meets %s, and frees as much', async () => {
    for (const fault of ONCE) {
      const session = await openSession()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ expiresAt: 5 })
      await writer.append()
      injectFaults([fault])
      await session.reclaim({ now: 10, trimmedBefore: 0, blocksMax: 10 })
      expect(seqNumsOf(await session.read('a', WHOLE_LOG))).toEqual([1])
      const [block] = await session.read('a', WHOLE_LOG)
      expect(await session.measure(['a'])).toEqual([block!.meteredBytes])
    }
  })

  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'nothing acknowledged is lost, nothing is doubled (seed %i)',
    async (seed) => {
      const prng = new Prng(seed)
      const name = `lost-${databases++}`
      const sessions = [await openSession(name), await openSession(name)]
      await LogWriter.create(sessions[0]!, 'a')
      const outcomes = { made: new Set<string>(), unknown: new Set<string>(), refused: new Set<string>() }
      for (let round = 0; round < 60; round++) {
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
      expect(outcomes.made.size).toBeGreaterThan(30)
    },
  )
})
