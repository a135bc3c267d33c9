import { describe, expect, test } from 'vitest'
import { LogWriter } from '../../adapters/conformance/log-writer.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { openFaulty } from './storage-support.ts'

/** A storage with a session that records its notifications in `notified`, and a writer in another session. */
async function followed(options: Parameters<typeof openFaulty>[0] = {}) {
  const opened = await openFaulty(options)
  const author = await opened.storage.open({ clock: opened.clock, onLogChanged: () => {} })
  const writer = new LogWriter(author, 'log')
  return {
    ...opened,
    /** Appends, runs everything that is not delayed, and returns the notifications so far. */
    async append() {
      opened.notified.length = 0
      await writer.append()
      await opened.clock.settle()
      return [...opened.notified]
    },
  }
}

describe('notifications', () => {
  test('are dropped until `heal`', async () => {
    const { storage, append } = await followed()
    storage.dropNotifications()
    expect(await append()).toEqual([])
    expect(await append()).toEqual([])
    storage.heal()
    expect(await append()).toEqual(['log'])
    expect(storage.log.map(({ fault }) => fault)).toEqual(['dropped', 'dropped'])
  })

  test('are selected by their number and their log', async () => {
    const { storage, append } = await followed()
    storage.dropNotifications({ nth: 2 })
    storage.dropNotifications({ when: (logId) => logId === 'other' })
    expect([await append(), await append(), await append()]).toEqual([['log'], [], ['log']])
  })
})

describe('the notifications in the manifest', () => {
  test.each([
    ['reliable', undefined, 'hint'],
    ['hint', undefined, 'hint'],
    ['none', undefined, 'none'],
    ['reliable', 'reliable', 'reliable'],
  ] as const)('%s, with the option %s, are %s', (own, given, expected) => {
    const inner = { ...memory(), manifest: { ...memory().manifest, notifications: own } }
    const storage = faultyStorage(inner, given && { notifications: given })
    expect(storage.manifest.notifications).toBe(expected)
  })

  test('are never dropped if they are reliable', () => {
    const storage = faultyStorage(memory(), { notifications: 'reliable' })
    expect(() => storage.dropNotifications()).toThrow(expect.objectContaining({ code: 'invalid' }))
  })
})
