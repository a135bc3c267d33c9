import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { type Launched, launchOnItsOwn } from './chromium.ts'
import type * as Engine from './pages/indexeddb-engine.ts'
import type * as Tabs from './pages/indexeddb-tabs.ts'
import { type Browser, inChromium, PATIENCE, scriptIn } from './support.ts'

let kill: () => Promise<void>
const launch = async (...args: Parameters<typeof launchOnItsOwn>): Promise<Launched> => {
  const launched = await launchOnItsOwn(...args)
  kill = launched.kill
  return launched
}

inChromium(
  'IndexedDB in tabs that are hidden, and a browser that is killed',
  (browser) => {
    const openTab = async () => {
      const page = await browser.page()
      return { page, tab: await scriptIn<typeof Tabs>(page, 'indexeddb-tabs') }
    }

    it('background work is given up by a tab that is frozen, and asked for again when it runs again', async () => {
      const frozen = await openTab()
      await frozen.tab.takePart('freezing')
      await expect.poll(() => frozen.tab.told(), PATIENCE).toEqual([true])
      const other = await openTab()
      await other.tab.takePart('freezing')
      await setLifecycle(browser, frozen.page, 'frozen')
      await expect.poll(() => other.tab.told(), PATIENCE).toEqual([true])

      await setLifecycle(browser, frozen.page, 'active')
      await expect.poll(() => frozen.tab.told(), PATIENCE).toEqual([true, false])
      await other.tab.leave()
      await expect.poll(() => frozen.tab.told(), PATIENCE).toEqual([true, false, true])
    })

    it('background work does not wait for a tab that is frozen while it waits', async () => {
      const frozen = await openTab()
      const [first, last] = [await openTab(), await openTab()]
      await first.tab.takePart('queue')
      await expect.poll(() => first.tab.told(), PATIENCE).toEqual([true])
      await frozen.tab.takePart('queue')
      await last.tab.takePart('queue')
      await setLifecycle(browser, frozen.page, 'frozen')
      await first.tab.leave()
      await expect.poll(() => last.tab.told(), PATIENCE).toEqual([true])
      await setLifecycle(browser, frozen.page, 'active')
      expect(await frozen.tab.told()).toEqual([])
    })

    it('background work is given up by a page that is kept for when the user comes back', async () => {
      const { page, tab } = await openTab()
      await tab.takePart('kept')
      await expect.poll(() => tab.told(), PATIENCE).toEqual([true])
      const other = await openTab()
      await other.tab.takePart('kept')
      await page.goto(`${browser.origin}/wasm`)
      await expect.poll(() => other.tab.told(), PATIENCE).toEqual([true])
      await other.tab.leave()
    })

    it('what was acknowledged is there after the browser was killed, and no part of a batch', async () => {
      const size = 30
      const acknowledged = new Set<number>()
      const page = await browser.context.newPage()
      await page.goto(browser.origin)
      await page.exposeFunction('acknowledged', (batch: number) => void acknowledged.add(batch))
      const engine = await scriptIn<typeof Engine>(page, 'indexeddb-engine')
      await engine.openEngine('killed')
      engine.appendForever(size).catch(() => {})
      await expect.poll(() => acknowledged.size, PATIENCE).toBeGreaterThanOrEqual(30)
      await browser.relaunch(kill)

      const again = await scriptIn<typeof Engine>(await browser.page(), 'indexeddb-engine')
      await again.openEngine('killed')
      const bodies = await again.readAll()
      expect(bodies.length % size).toBe(0)
      const stored = bodies.filter((_, index) => index % size === 0).map((body) => Number(body.split('/')[0]))
      const expected = stored.flatMap((batch) =>
        Array.from({ length: size }, (_, index) => `${batch}/${index}`),
      )
      expect(bodies).toEqual(expected)
      expect([...acknowledged].filter((batch) => !stored.includes(batch))).toEqual([])
      await again.closeEngine()
    })
  },
  { launch },
)

async function setLifecycle(browser: Browser, page: Page, state: 'frozen' | 'active'): Promise<void> {
  const session = await browser.context.newCDPSession(page)
  await session.send('Page.setWebLifecycleState', { state })
  await session.detach()
}
