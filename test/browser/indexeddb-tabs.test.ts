import { describe, expect, it } from 'vitest'
import type * as Tabs from './pages/indexeddb-tabs.ts'
import { inChromium, PATIENCE, scriptIn, scriptInKeptWorker } from './support.ts'

inChromium('IndexedDB in several tabs', (browser) => {
  const openTab = async () => {
    const page = await browser.page()
    return { page, tab: await scriptIn<typeof Tabs>(page, 'indexeddb-tabs') }
  }
  const openWorker = async () => scriptInKeptWorker<typeof Tabs>(await browser.page(), 'indexeddb-tabs')

  describe('followers', () => {
    it('hear of what another tab, or a worker, appends', async () => {
      const [{ tab: follower }, { tab: author }, worker] = [
        await openTab(),
        await openTab(),
        await openWorker(),
      ]
      for (const engine of [follower, author, worker]) await engine.openEngine('hints')
      await author.append('first')
      await follower.follow()
      const expected = ['first']
      for (let i = 0; i < 20; i++) {
        expected.push(`tab ${i}`, `worker ${i}`)
        await author.append(`tab ${i}`)
        await worker.append(`worker ${i}`)
        await expect.poll(() => follower.seen(), PATIENCE).toEqual(expected)
      }
      // One after another without waiting for anybody.
      await Promise.all(Array.from({ length: 50 }, (_, i) => author.append(`burst ${i}`)))
      await expect.poll(async () => (await follower.seen()).length, PATIENCE).toBe(91)
      for (const engine of [follower, author, worker]) await engine.closeEngine()
    })

    it('in a worker hear of what a tab appends', async () => {
      const [worker, { tab }] = [await openWorker(), await openTab()]
      for (const engine of [worker, tab]) await engine.openEngine('worker')
      await tab.append('a')
      await worker.follow()
      await expect.poll(() => worker.seen(), PATIENCE).toEqual(['a'])
      await tab.append('b')
      await expect.poll(() => worker.seen(), PATIENCE).toEqual(['a', 'b'])
      for (const engine of [worker, tab]) await engine.closeEngine()
    })
  })

  describe('background work', () => {
    it('is one tab’s turn; when that is closed, the next one’s', async () => {
      const tabs = [await openTab(), await openTab(), await openTab()]
      for (const [index, { tab, page }] of tabs.entries()) {
        await tab.takePart('closing')
        // They have it in the order in which they ask, and one asks once it has the code for it.
        await expect.poll(() => page.evaluate(asking, 'closing'), PATIENCE).toBe(index + 1)
      }
      await expect.poll(() => tabs[0]!.tab.told(), PATIENCE).toEqual([true])
      expect(await tabs[1]!.tab.told()).toEqual([])
      await tabs[0]!.page.close()
      await expect.poll(() => tabs[1]!.tab.told(), PATIENCE).toEqual([true])
      expect(await tabs[2]!.tab.told()).toEqual([])
      await tabs[1]!.tab.leave()
      expect(await tabs[1]!.tab.told()).toEqual([true, false])
      await expect.poll(() => tabs[2]!.tab.told(), PATIENCE).toEqual([true])
    })
  })
})

/** How many have the turn or wait for it. */
async function asking(database: string): Promise<number> {
  const { held = [], pending = [] } = await navigator.locks.query()
  return [...held, ...pending].filter(({ name }) => name === `headwater ${database} background`).length
}
