import { describe, expect, test } from 'vitest'
import { WHOLE_LOG } from '../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../adapters/conformance/log-writer.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import {
  type FaultyStorage,
  faultyStorage,
  type VirtualClock,
  virtualClock,
} from '../../adapters/testing/index.ts'
import type { StorageSession } from '../../src/storage/contract.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { openFaulty, outcome, put } from './storage-support.ts'

describe.each([
  ['loses its connection', (storage: FaultyStorage) => storage.loseConnection()],
  ['crashes', (storage: FaultyStorage) => storage.crash()],
])('a storage that %s', (_, breakIt) => {
  test('leaves the outcome of calls in flight unknown: a delayed one never takes effect', async () => {
    const { storage, session, clock } = await openFaulty()
    const writer = new LogWriter(session, 'log')
    storage.delay('append', '1s', { nth: 1, after: true })
    storage.delay('append', '1s', { nth: 2 })
    storage.delay('get', '1s')
    const appends = [writer.append(), writer.append(), writer.append()]
    const get = session.get('streams', 'a')
    const broken = breakIt(storage)
    const uncertain = { kind: 'io', nothingWritten: false }
    for (const append of appends) await expect(append).rejects.toMatchObject(uncertain)
    await expect(get).rejects.toMatchObject({ kind: 'io', nothingWritten: true })
    await broken
    expect(clock.pending).toBe(0)
    storage.restore()
    const reopened = await storage.open({ clock, onLogChanged: () => {} })
    await clock.advance('1h')
    expect(await reopened.head('log')).toMatchObject({ tail: { seqNum: 1 } })
    expect(await outcome(new LogWriter(reopened, 'log', (await reopened.head('log'))!).append())).toBe('done')
  })

  test('fails an `open` in flight', async () => {
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
})

describe('a storage that loses its connection', () => {
  test('fails every call and every `open` until it is restored', async () => {
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

  test('notifies of the logs that changed meanwhile when it is restored', async () => {
    const { storage, notified, clock, session } = await openFaulty({ notifications: 'reliable' })
    const inner = await LogWriter.create(session, 'x')
    await clock.settle()
    notified.length = 0
    const author = await storage.open({ clock, onLogChanged: () => {} })
    // An engine with its own connection.
    const writes = [1, 2].map(() => new LogWriter(author, inner.logId, inner.head).request())
    const appended = author.append(writes[0]!)
    storage.loseConnection()
    expect(await outcome(appended)).toBe('io')
    await clock.settle()
    expect(notified).toEqual([])
    storage.restore()
    expect(notified).toEqual([])
    await clock.settle()
    expect(notified).toEqual(['x'])
  })
})

describe('a storage that crashes', () => {
  test('closes its sessions, and opens again with everything acknowledged', async () => {
    const { storage, session, clock } = await openFaulty()
    const writer = new LogWriter(session, 'log')
    await writer.append()
    await storage.crash()
    await expect(session.get('streams', 'a')).rejects.toMatchObject({ kind: 'closed', nothingWritten: true })
    expect(await outcome(writer.append())).toBe('closed')
    await session.close()
    const reopened = await storage.open({ clock, onLogChanged: () => {} })
    expect(await reopened.read('log', WHOLE_LOG)).toHaveLength(1)
    expect(storage.log).toEqual([{ fault: 'crash' }])
  })

  test('closes the wrapped storage and sends no more notifications', async () => {
    const { storage, session, notified, clock } = await openFaulty()
    const author = await storage.open({ clock, onLogChanged: () => {} })
    const appended = outcome(new LogWriter(author, 'log').append())
    // The notification is delivered in a later turn after the connection was restored.
    storage.loseConnection()
    await clock.settle()
    storage.restore()
    await storage.crash()
    expect(await appended).toBe('io')
    await session.close()
    await author.close()
    const reopened = await storage.open({ clock, onLogChanged: () => {} })
    await LogWriter.create(reopened, 'new')
    await clock.settle()
    expect(notified).toEqual([])
  })

  /** A storage with one session at a time, whose calls settle only when the test releases them. */
  function oneAtATime() {
    const inner = memory()
    const waiting: (() => void)[] = []
    const released = () => new Promise<void>((resolve) => waiting.push(resolve))
    let isTaken = false
    let isSlow = false
    const storage = faultyStorage({
      manifest: inner.manifest,
      async open(context) {
        if (isTaken) throw new StorageFailure('blocked', 'it is taken', { nothingWritten: true })
        isTaken = true
        if (isSlow) await released()
        const session = await inner.open(context)
        const closeInner = session.close.bind(session)
        const close = async () => {
          if (isSlow) await released()
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
  ])('%s, resolves `crash` when it can be opened again', async (_, begin) => {
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
})
