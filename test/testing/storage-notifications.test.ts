import { describe, expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { LogWriter } from '../../src/storage/conformance/log-writer.ts'
import { openFaulty } from './storage-support.ts'

/** A storage with a follower, whose `told` this is, and a writer at another session. */
async function followed(options: Parameters<typeof openFaulty>[0] = {}) {
  const opened = await openFaulty(options)
  const author = await opened.storage.open({ clock: opened.clock, onLogChanged: () => {} })
  const writer = new LogWriter(author, 'log')
  return {
    ...opened,
    /** Appends, lets everything happen that is not late, and gives what the follower was told by then. */
    async append() {
      opened.told.length = 0
      await writer.append()
      await opened.clock.settle()
      return [...opened.told]
    },
  }
}

describe('notifications', () => {
  test('come as they are', async () => {
    const { append } = await followed()
    expect(await append()).toEqual(['log'])
  })

  test('are dropped until it is healed', async () => {
    const { storage, append } = await followed()
    storage.dropNotifications()
    expect(await append()).toEqual([])
    expect(await append()).toEqual([])
    storage.heal()
    expect(await append()).toEqual(['log'])
    expect(storage.log.map(({ fault }) => fault)).toEqual(['dropped', 'dropped'])
  })

  test('come twice', async () => {
    const { storage, append } = await followed({ notifications: 'reliable' })
    storage.duplicateNotifications()
    expect(await append()).toEqual(['log', 'log'])
  })

  test('come late', async () => {
    const { storage, append, told, clock } = await followed()
    storage.delayNotifications('2s')
    expect(await append()).toEqual([])
    await clock.advance(1999)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toEqual(['log'])
  })

  test('that are late do not come to a session that is closed', async () => {
    const { storage, session, append, told, clock } = await followed()
    storage.delayNotifications('2s')
    await append()
    await session.close()
    await clock.advance('1h')
    expect(told).toEqual([])
    expect(clock.pending).toBe(0)
  })

  test('are lost, repeated and late by chance', async () => {
    const { storage, append } = await followed()
    storage.rates = { notification: { drop: 0.3, duplicate: 0.3 } }
    const counts = new Set<number>()
    for (let i = 0; i < 40; i++) counts.add((await append()).length)
    expect([...counts].sort()).toEqual([0, 1, 2])
  })
})

describe('what the manifest promises of notifications', () => {
  test('is `hint` where they were reliable, else as it was, or as it is told', () => {
    const { manifest } = memory()
    const promised = (own: typeof manifest.notifications, given?: typeof manifest.notifications) =>
      faultyStorage(
        { ...memory(), manifest: { ...manifest, notifications: own } },
        given && { notifications: given },
      ).manifest.notifications
    expect(promised('reliable')).toBe('hint')
    expect(promised('hint')).toBe('hint')
    expect(promised('none')).toBe('none')
    expect(promised('reliable', 'reliable')).toBe('reliable')
  })

  test('is kept: reliable ones are neither dropped nor late', () => {
    const storage = faultyStorage(memory(), { notifications: 'reliable' })
    expect(() => storage.dropNotifications()).toThrow(RangeError)
    expect(() => storage.delayNotifications('1s')).toThrow(RangeError)
    for (const notification of [{ drop: 0.1 }, { delay: [0, 5] as const }]) {
      expect(() => {
        storage.rates = { notification }
      }).toThrow(RangeError)
    }
    storage.rates = { notification: { duplicate: 1 } }
  })
})
