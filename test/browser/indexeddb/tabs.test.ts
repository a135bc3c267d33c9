// @module-tag slow

import { describe, expect, it } from 'vitest'
import { launchProcess, setLifecycle } from '../chromium.ts'
import type * as Tabs from '../pages/indexeddb-tabs.ts'
import { inChromium, scriptIn, scriptInWorker } from '../support.ts'

inChromium('IndexedDB in several tabs', (browser) => {
  const openTab = async () => {
    const page = await browser.page()
    return { page, tab: await scriptIn<typeof Tabs>(page, 'indexeddb-tabs') }
  }
  const openWorker = async () => scriptInWorker<typeof Tabs>(await browser.page(), 'indexeddb-tabs')

  describe('followers', () => {
    it('receive appends of other tabs and of workers', async () => {
      const [{ tab: follower }, { tab: author }, worker] = [
        await openTab(),
        await openTab(),
        await openWorker(),
      ]
      for (const engine of [follower, author, worker]) await engine.openEngine('hints')
      await author.append('first')
      await follower.follow()
      const expected = ['first']
      for (let i = 0; i < 3; i++) {
        expected.push(`tab ${i}`, `worker ${i}`)
        await author.append(`tab ${i}`)
        await worker.append(`worker ${i}`)
        await expect.poll(() => follower.followed()).toEqual(expected)
      }
      for (const engine of [follower, author, worker]) await engine.closeEngine()
    })
  })

  describe('background work', () => {
    it('belongs to one tab at a time, and passes to the next when that tab is closed', async () => {
      const tabs = [await openTab(), await openTab(), await openTab()]
      for (const [index, { tab, page }] of tabs.entries()) {
        await tab.contend('closing')
        // Tabs get the lock in the order of their requests.
        await expect.poll(() => page.evaluate(countRequests, 'closing')).toBe(index + 1)
      }
      await expect.poll(() => tabs[0]!.tab.elections()).toEqual([true])
      expect(await tabs[1]!.tab.elections()).toEqual([])
      await tabs[0]!.page.close()
      await expect.poll(() => tabs[1]!.tab.elections()).toEqual([true])
      expect(await tabs[2]!.tab.elections()).toEqual([])
      await tabs[1]!.tab.closeSession()
      expect(await tabs[1]!.tab.elections()).toEqual([true, false])
      await expect.poll(() => tabs[2]!.tab.elections()).toEqual([true])
    })
  })
})

// Playwright makes all tabs of the browsers that it launches believe that they are visible.
inChromium(
  'IndexedDB in hidden tabs',
  (browser) => {
    const openTab = async () => {
      const page = await browser.page()
      return { page, tab: await scriptIn<typeof Tabs>(page, 'indexeddb-tabs') }
    }

    it('a frozen tab gives up background work, and asks for it again when it resumes', async () => {
      const frozen = await openTab()
      await frozen.tab.contend('freezing')
      await expect.poll(() => frozen.tab.elections()).toEqual([true])
      const other = await openTab()
      await other.tab.contend('freezing')
      await setLifecycle(frozen.page, 'frozen')
      await expect.poll(() => other.tab.elections()).toEqual([true])

      await setLifecycle(frozen.page, 'active')
      await expect.poll(() => frozen.tab.elections()).toEqual([true, false])
      await other.tab.closeSession()
      await expect.poll(() => frozen.tab.elections()).toEqual([true, false, true])
    })

    it('a page in the back/forward cache gives up background work', async () => {
      const { page, tab } = await openTab()
      await tab.contend('kept')
      await expect.poll(() => tab.elections()).toEqual([true])
      const other = await openTab()
      await other.tab.contend('kept')
      await page.goto(`${browser.origin}/wasm`)
      await expect.poll(() => other.tab.elections()).toEqual([true])
      await other.tab.closeSession()
    })
  },
  { launch: launchProcess },
)

/** The number of sessions that hold or request the lock. */
async function countRequests(database: string): Promise<number> {
  const { held = [], pending = [] } = await navigator.locks.query()
  return [...held, ...pending].filter(({ name }) => name === `headwater ${database} background`).length
}
