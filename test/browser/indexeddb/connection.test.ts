// @module-tag slow

import { describe, expect, it } from 'vitest'
import { DATABASE_VERSION } from '../../../adapters/storage/indexeddb/connection.ts'
import type * as Connections from '../pages/indexeddb-connections.ts'
import type * as Raw from '../pages/indexeddb-raw.ts'
import { inChromium, scriptIn } from '../support.ts'

const DONE = { kind: 'done' }

inChromium('IndexedDB in Chromium', (browser) => {
  const storage = async () => scriptIn<typeof Connections>(await browser.page(), 'indexeddb-connections')
  /** Another tab, which uses the database without headwater. */
  const otherTab = async () => scriptIn<typeof Raw>(await browser.page(), 'indexeddb-raw')

  describe('opening', () => {
    it('times out while another tab blocks it, and succeeds once that closes the database', async () => {
      const [tab, other, third] = [await storage(), await otherTab(), await otherTab()]
      expect(await other.holdOpen('blocked')).toBe(1)
      await expect(third.remove('blocked')).rejects.toThrow('open elsewhere')
      // Waits for the deletion, which waits for the other tab.
      expect(await tab.open('blocked', 5)).toEqual({
        kind: 'blocked',
        nothingWritten: true,
        message: expect.stringContaining('keeps it open'),
      })
      await other.release()
      expect(await tab.open('blocked')).toEqual(DONE)
      await tab.close()
    })
  })

  describe('upgrades', () => {
    it('are not blocked by another tab, whose later calls explain why they fail', async () => {
      const [tab, other] = [await storage(), await otherTab()]
      await tab.open('given up')
      await tab.put(1)
      expect(await other.holdOpen('given up', DATABASE_VERSION + 1)).toBe(DATABASE_VERSION + 1)
      expect(await tab.put(2)).toMatchObject({
        kind: 'upgraded',
        message: expect.stringContaining('newer version'),
      })
      expect(await tab.get()).toMatchObject({ kind: 'upgraded' })
      await tab.close()
    })
  })

  describe('connections', () => {
    it('do not block a tab that deletes the database, and continue with an empty one', async () => {
      const [tab, other] = [await storage(), await otherTab()]
      await tab.open('deleted')
      await tab.put(1)
      await other.remove('deleted')
      expect(await tab.get()).toBeUndefined()
      expect(await tab.put(2)).toEqual(DONE)
      expect(await tab.get()).toBe(2)
      await tab.close()
      await other.remove('deleted')
    })

    it('are reopened after a loss, and nothing is lost or duplicated', async () => {
      const tab = await storage()
      await tab.watchConnections()
      await tab.open('dropped')
      expect(await tab.appendWhileDropping(20)).toEqual(Array.from({ length: 40 }, (_, i) => i))
      for (const withEvent of [true, false]) {
        expect(await tab.dropConnections(withEvent)).toBeGreaterThan(0)
        expect(await tab.put(3)).toEqual(DONE)
        expect(await tab.dropConnections(withEvent)).toBeGreaterThan(0)
        expect(await tab.get()).toBe(3)
      }
      await tab.close()
    })

    it('are reopened after the browser clears the data of the origin', async () => {
      const page = await browser.page()
      const tab = await scriptIn<typeof Connections>(page, 'indexeddb-connections')
      await tab.open('cleared')
      await tab.put(1)
      const session = await browser.context.newCDPSession(page)
      // Forces all connections closed and deletes the database.
      await session.send('Storage.clearDataForOrigin', { origin: browser.origin, storageTypes: 'indexeddb' })
      // Chromium may answer before it has closed them all: a call that opens one again may fail once more.
      await expect.poll(() => tab.get()).toBeUndefined()
      expect(await tab.put(2)).toEqual(DONE)
      expect(await tab.get()).toBe(2)
      await tab.close()
    })
  })
})
