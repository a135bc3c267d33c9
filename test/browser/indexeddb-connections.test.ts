import { describe, expect, it } from 'vitest'
import { SCHEMA_VERSION } from '../../adapters/storage/indexeddb/schema.ts'
import type * as Connections from './pages/indexeddb-connections.ts'
import type * as Raw from './pages/indexeddb-raw.ts'
import { inChromium, scriptIn } from './support.ts'

const DONE = { kind: 'done' }

inChromium('IndexedDB in Chromium', (browser) => {
  const storage = async () => scriptIn<typeof Connections>(await browser.page(), 'indexeddb-connections')
  /** Another tab. */
  const somebody = async () => scriptIn<typeof Raw>(await browser.page(), 'indexeddb-raw')

  describe('upgrades', () => {
    it('from version 1 keep everything', async () => {
      const tab = await storage()
      await tab.makeVersion1('version 1')
      expect(await tab.open('version 1')).toEqual(DONE)
      await tab.checkUpgraded()
      await tab.close()
    })

    it('beyond our version are told', async () => {
      const other = await somebody()
      await other.hold('newer', SCHEMA_VERSION + 1)
      const tab = await storage()
      expect(await tab.open('newer')).toMatchObject({ kind: 'blocked', nothingWritten: true })
    })

    it('that another tab blocks are given up after a while, and made once it lets go', async () => {
      const [tab, other] = [await storage(), await somebody()]
      await tab.makeVersion1('blocked')
      expect(await other.hold('blocked')).toBe(1)
      expect(await tab.open('blocked', 5)).toEqual({
        kind: 'blocked',
        nothingWritten: true,
        message: expect.stringContaining('another tab has it open'),
      })
      await other.letGo()
      expect(await tab.open('blocked')).toEqual(DONE)
      await tab.checkUpgraded()
      await tab.close()
    })

    it('of another tab are not blocked, and later calls tell why they fail', async () => {
      const [tab, other] = [await storage(), await somebody()]
      await tab.open('given up')
      await tab.put(1)
      expect(await other.hold('given up', SCHEMA_VERSION + 1)).toBe(SCHEMA_VERSION + 1)
      expect(await tab.put(2)).toMatchObject({
        kind: 'blocked',
        message: expect.stringContaining('newer version'),
      })
      expect(await tab.get()).toMatchObject({ kind: 'blocked' })
      await tab.close()
    })

    it('that do not come to an end do not hang those who open', async () => {
      const [deaf, upgrading, tab] = [await somebody(), await somebody(), await storage()]
      expect(await deaf.hold('queue', SCHEMA_VERSION)).toBe(SCHEMA_VERSION)
      await expect(upgrading.hold('queue', SCHEMA_VERSION + 1)).rejects.toThrow('open elsewhere')
      expect(await tab.open('queue', 5)).toMatchObject({
        kind: 'blocked',
        message: expect.stringContaining('did not answer'),
      })
    })
  })

  describe('connections', () => {
    it('are given up for a tab that deletes the database, and another database takes its place', async () => {
      const [tab, other] = [await storage(), await somebody()]
      await tab.open('deleted')
      await tab.put(1)
      await other.remove('deleted')
      expect(await tab.get()).toBeUndefined()
      expect(await tab.put(2)).toEqual(DONE)
      expect(await tab.get()).toBe(2)
      await tab.close()
      await other.remove('deleted')
    })

    it('that are lost are made anew, and nothing is lost or doubled', async () => {
      const tab = await storage()
      await tab.watchConnections()
      await tab.open('dropped')
      expect(await tab.appendWhileDropping(20)).toEqual(Array.from({ length: 40 }, (_, i) => i))
      for (const howToTell of ['by an event', 'not at all'] as const) {
        expect(await tab.dropConnections(howToTell)).toBeGreaterThan(0)
        expect(await tab.put(3)).toEqual(DONE)
        expect(await tab.dropConnections(howToTell)).toBeGreaterThan(0)
        expect(await tab.get()).toBe(3)
      }
      await tab.close()
    })

    it('that the browser drops are made anew', async () => {
      const page = await browser.page()
      const tab = await scriptIn<typeof Connections>(page, 'indexeddb-connections')
      await tab.open('cleared')
      await tab.put(1)
      const session = await browser.context.newCDPSession(page)
      // Closes every connection by force, and deletes what they were to.
      await session.send('Storage.clearDataForOrigin', { origin: browser.origin, storageTypes: 'indexeddb' })
      expect(await tab.get()).toBeUndefined()
      expect(await tab.put(2)).toEqual(DONE)
      expect(await tab.get()).toBe(2)
      await tab.close()
    })
  })

  describe('appends', () => {
    it.each([
      [['abort'], ['done', 'done', 'done', 'done']],
      [['close'], ['done', 'done', 'done', 'done']],
      [['lose-answer'], ['done', 'done', 'done', 'done']],
      [
        [undefined, 'abort'],
        ['done', 'done', 'done', 'done'],
      ],
      [
        [undefined, 'lose-answer'],
        ['done', 'done', 'done', 'done'],
      ],
      [
        ['lose-answer', 'lose-answer'],
        ['io', 'done', 'done', 'done'],
      ],
      [
        [undefined, 'lose-answer', 'abort'],
        ['done', 'io', 'io', 'done'],
      ],
    ] as const)('that meet %j come to %j, and are made once', async (faults, outcomes) => {
      const tab = await storage()
      await tab.open('faults')
      expect(await tab.appendAmong(faults)).toEqual(outcomes)
      await tab.close()
    })
  })
})
