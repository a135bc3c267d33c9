import { describe, expect, test } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import {
  type FaultyStorage,
  faultyStorage,
  type VirtualClock,
  virtualClock,
} from '../../adapters/testing/index.ts'
import { LogWriter, WHOLE_LOG } from '../../src/storage/conformance/log-writer.ts'
import type { StorageSession } from '../../src/storage/contract.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { wrapped } from '../engine/wrapped-storage.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'
import { openFaulty, outcome, put } from './storage-support.ts'

describe('a storage that loses its connection', () => {
  test('fails every call, and the opening, until it is restored', async () => {
    const { storage, session, clock } = await openFaulty()
    const context = { clock, onLogChanged: () => {} }
    storage.loseConnection()
    storage.loseConnection()
    await expect(session.get('streams', 'a')).rejects.toMatchObject({ kind: 'io', nothingWritten: true })
    expect(await outcome(session.commit([put('b')]))).toBe('io')
    expect(await outcome(storage.open(context))).toBe('io')
    storage.restore()
    storage.restore()
    expect(await session.get('streams', 'b')).toBeUndefined()
    expect(await outcome(storage.open(context))).toBe('done')
    expect(storage.log).toEqual([{ fault: 'connection lost' }, { fault: 'connection restored' }])
  })

  test('leaves open what came of the calls in flight: one was made, one never is', async () => {
    const { storage, session, clock } = await openFaulty()
    const writer = new LogWriter(session, 'log')
    storage.delay('append', '1s', { nth: 1, after: true })
    storage.delay('append', '1s', { nth: 2 })
    storage.delay('get', '1s')
    const appends = [writer.append(), writer.append(), writer.append()]
    const get = session.get('streams', 'a')
    storage.loseConnection()
    const uncertain = { kind: 'io', nothingWritten: false }
    for (const append of appends) await expect(append).rejects.toMatchObject(uncertain)
    await expect(get).rejects.toMatchObject({ kind: 'io', nothingWritten: true })
    expect(clock.pending).toBe(0)
    storage.restore()
    await clock.advance('1h')
    expect(await session.head('log')).toMatchObject({ tail: { seqNum: 1 } })
    expect(await outcome(new LogWriter(session, 'log', (await session.head('log'))!).append())).toBe('done')
  })

  test.each([
    ['loses its connection', (storage: FaultyStorage) => storage.loseConnection()],
    ['crashes', (storage: FaultyStorage) => storage.crash()],
  ])('opens to nobody who was opening it when it %s', async (_, breakIt) => {
    const { storage, clock } = await openFaulty()
    const context = { clock, onLogChanged: () => {} }
    storage.delay('open', '1s', { nth: 1 })
    storage.delay('open', '1s', { nth: 2, after: true })
    const openings = [storage.open(context), storage.open(context)].map(outcome)
    await clock.settle()
    await breakIt(storage)
    expect(await Promise.all(openings)).toEqual(['io', 'io'])
    storage.heal()
    expect(await outcome(storage.open(context))).toBe('done')
    expect(clock.pending).toBe(0)
  })

  test('closes without one', async () => {
    const { storage, session } = await openFaulty()
    storage.loseConnection()
    await session.close()
    expect(await outcome(session.head('log'))).toBe('closed')
  })

  test('is healed', async () => {
    const { storage, session } = await openFaulty()
    storage.loseConnection()
    storage.heal()
    expect(await outcome(session.head('log'))).toBe('done')
  })

  test('tells of the logs that changed meanwhile when it is there again, also where notifications are reliable', async () => {
    const { storage, told, clock, session } = await openFaulty({ notifications: 'reliable' })
    const inner = await LogWriter.create(session, 'x')
    await clock.settle()
    told.length = 0
    const author = await storage.open({ clock, onLogChanged: () => {} })
    // What an engine does whose connection is another.
    const writes = [1, 2].map(() => new LogWriter(author, inner.logId, inner.head).request())
    const appended = author.append(writes[0]!)
    storage.loseConnection()
    expect(await outcome(appended)).toBe('io')
    await clock.settle()
    expect(told).toEqual([])
    storage.restore()
    expect(told).toEqual([])
    await clock.settle()
    expect(told).toEqual(['x'])
  })
})

test('what a storage offers beyond its calls is there if it is there', async () => {
  const { session } = await openFaulty()
  expect(session.backgroundTurn).toBeUndefined()
  const turns: boolean[] = []
  const inner = memory()
  const storage = faultyStorage({
    manifest: inner.manifest,
    open: async (context) =>
      Object.assign(await inner.open(context), {
        backgroundTurn(onTurn: (isOurs: boolean) => void) {
          onTurn(true)
          return () => void turns.push(false)
        },
      }),
  })
  const other = await storage.open({ clock: virtualClock(), onLogChanged: () => {} })
  other.backgroundTurn!((isOurs) => turns.push(isOurs))()
  expect(turns).toEqual([true, false])
})

describe('a storage that crashes', () => {
  test('is closed to whoever had it open, and opens again with what was acknowledged', async () => {
    const { storage, session, clock } = await openFaulty()
    const writer = new LogWriter(session, 'log')
    await writer.append()
    await storage.crash()
    await expect(session.get('streams', 'a')).rejects.toMatchObject({ kind: 'closed', nothingWritten: true })
    expect(await outcome(writer.append())).toBe('closed')
    await session.close()
    const again = await storage.open({ clock, onLogChanged: () => {} })
    expect(await again.read('log', WHOLE_LOG)).toHaveLength(1)
    expect(storage.log).toEqual([{ fault: 'crash' }])
  })

  test('leaves open what came of the calls in flight: one was made, one never is', async () => {
    const { storage, session, clock } = await openFaulty()
    const writer = new LogWriter(session, 'log')
    storage.delay('append', '1s', { nth: 1, after: true })
    storage.delay('append', '1s', { nth: 2 })
    const appends = [writer.append(), writer.append()]
    const crashed = storage.crash()
    for (const append of appends) {
      await expect(append).rejects.toMatchObject({ kind: 'io', nothingWritten: false })
    }
    await crashed
    expect(clock.pending).toBe(0)
    const again = await storage.open({ clock, onLogChanged: () => {} })
    await clock.advance('1h')
    expect(await again.head('log')).toMatchObject({ tail: { seqNum: 1 } })
  })

  test('releases the storage below, and tells nobody anything any more', async () => {
    const { storage, session, told, clock } = await openFaulty()
    storage.delayNotifications('1s')
    const author = await storage.open({ clock, onLogChanged: () => {} })
    await new LogWriter(author, 'log').append()
    await clock.settle()
    expect(clock.pending).toBe(1)
    await storage.crash()
    expect(clock.pending).toBe(0)
    await session.close()
    await author.close()
    const again = await storage.open({ clock, onLogChanged: () => {} })
    await LogWriter.create(again, 'new')
    await clock.settle()
    expect(told).toEqual([])
  })

  test('lets go of what only one may have, and keeps what it said was durable', async () => {
    const storage = faultyStorage(filesystem(await temporaryDirectory(), { durability: 'os' }))
    const context = { clock: virtualClock(), onLogChanged: () => {} }
    const writer = await LogWriter.create(await storage.open(context), 'log')
    await writer.append()
    expect(await outcome(storage.open(context))).toBe('blocked')
    await storage.crash()
    const again = await storage.open(context)
    expect(await again.head('log')).toEqual(writer.head)
    await again.close()
  })

  test('while it closes waits for no call that never comes back', async () => {
    const hanging = wrapped(memory(), {}, () => ({ get: () => new Promise(() => {}) }))
    const storage = faultyStorage(hanging)
    const session = await storage.open({ clock: virtualClock(), onLogChanged: () => {} })
    const get = outcome(session.get('streams', 'a'))
    const closed = session.close()
    await storage.crash()
    expect(await get).toBe('io')
    await closed
  })

  test('twice crashes what was opened in between', async () => {
    const { storage, clock } = await openFaulty()
    await storage.crash()
    const again = await storage.open({ clock, onLogChanged: () => {} })
    await storage.crash()
    expect(await outcome(again.head('log'))).toBe('closed')
  })

  /** A storage that has it open for one at a time, and ends what it begins only when it is told to. */
  function oneAtATime() {
    const inner = memory()
    const waiting: (() => void)[] = []
    const told = () => new Promise<void>((resolve) => waiting.push(resolve))
    let isTaken = false
    let isSlow = false
    const storage = faultyStorage({
      manifest: inner.manifest,
      async open(context) {
        if (isTaken) throw new StorageFailure('blocked', 'it is taken', { nothingWritten: true })
        isTaken = true
        if (isSlow) await told()
        const session = await inner.open(context)
        const closeInner = session.close.bind(session)
        const close = async () => {
          if (isSlow) await told()
          await closeInner()
          isTaken = false
        }
        return Object.assign(session, { close })
      },
    })
    const goOn = async (clock: VirtualClock) => {
      isSlow = false
      while (waiting.length > 0) {
        for (const resolve of waiting.splice(0)) resolve()
        await clock.settle()
      }
    }
    return {
      storage,
      goOn,
      beSlow: () => {
        isSlow = true
      },
    }
  }

  test.each<[string, (storage: FaultyStorage, session: StorageSession) => unknown]>([
    ['while it is being closed', (_, session) => session.close()],
    ['while it crashes', (storage) => storage.crash()],
  ])('%s, crashes until it can be opened again', async (_, begin) => {
    const { storage, goOn, beSlow } = oneAtATime()
    const clock = virtualClock()
    const context = { clock, onLogChanged: () => {} }
    const session = await storage.open(context)
    beSlow()
    const begun = begin(storage, session)
    const opened = storage.crash().then(() => outcome(storage.open(context)))
    await clock.settle()
    await goOn(clock)
    expect(await opened).toBe('done')
    await begun
  })

  test('while somebody opens it, crashes until it can be opened again', async () => {
    const { storage, goOn, beSlow } = oneAtATime()
    const clock = virtualClock()
    const context = { clock, onLogChanged: () => {} }
    beSlow()
    const opening = outcome(storage.open(context))
    await clock.settle()
    const opened = storage.crash().then(() => outcome(storage.open(context)))
    await clock.settle()
    await goOn(clock)
    expect(await opening).toBe('io')
    expect(await opened).toBe('done')
  })

  test('while it is being closed, makes none of the calls that were held back', async () => {
    const { storage, session, clock } = await openFaulty()
    storage.delay('append', '1s', { after: true })
    const append = new LogWriter(session, 'log').append()
    const closed = session.close()
    const crashed = storage.crash()
    expect(await outcome(append)).toBe('io')
    await Promise.all([closed, crashed])
    expect(clock.pending).toBe(0)
  })
})
