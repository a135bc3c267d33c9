// @module-tag slow

import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { launchProcess } from './chromium.ts'
import type * as MirrorPage from './pages/mirror.ts'
import { type Browser, inChromium, type Service, scriptIn, startService } from './support.ts'

async function openTab(browser: Browser, { url }: Service, database: string) {
  const page = await browser.page()
  const tab = await scriptIn<typeof MirrorPage>(page, 'mirror')
  await tab.start(url, database)
  return { page, tab }
}

/** Two tabs with mirrors of one stream, of which the first one copies. */
async function openTabs(browser: Browser, database: string) {
  const service = await startService()
  const stream = service.hw.basin('my-first-app').stream('s')
  await stream.append(['a', 'b'])
  const leader = await openTab(browser, service, database)
  await expect.poll(leader.tab.kind).toBe('live')
  const other = await openTab(browser, service, database)
  await expect.poll(other.tab.kind).toBe('live')
  expect(await other.tab.bodies()).toEqual(['a', 'b'])
  expect(service.open().openReads).toBe(1)
  return { service, stream, leader, other }
}

inChromium('a mirror in pages', (browser) => {
  it('copies, survives lost connections, and begins again at an earlier record', async () => {
    const service = await startService()
    const stream = service.hw.basin('my-first-app').stream('s')
    await stream.append(['a', 'b', 'c'])
    const { tab } = await openTab(browser, service, 'mirror')
    await expect.poll(tab.bodies).toEqual(['a', 'b', 'c'])
    await service.restart()
    await stream.append('d')
    await expect.poll(tab.bodies).toEqual(['a', 'b', 'c', 'd'])
    await tab.restart(1)
    await expect.poll(tab.bodies).toEqual(['d'])
    await tab.restart(3)
    await expect.poll(tab.bodies).toEqual(['b', 'c', 'd'])
    await tab.close()
    await service.idle()
  })

  it('continues in another tab when the one that copies is closed', async () => {
    const { service, stream, leader, other } = await openTabs(browser, 'closed')
    await leader.page.close()
    await stream.append('c')
    await expect.poll(other.tab.bodies).toEqual(['a', 'b', 'c'])
    await expect.poll(other.tab.kind).toBe('live')
    await other.tab.close()
    await service.idle()
  })
})

// Playwright makes all tabs of the browsers that it launches believe that they are visible.
inChromium(
  'a mirror in hidden pages',
  (browser) => {
    it('continues in another tab while the one that copies is frozen', async () => {
      const { stream, leader, other } = await openTabs(browser, 'frozen')
      await setLifecycle(browser, leader.page, 'frozen')
      await stream.append('c')
      await expect.poll(other.tab.bodies).toEqual(['a', 'b', 'c'])
      await expect.poll(other.tab.kind).toBe('live')
      await setLifecycle(browser, leader.page, 'active')
      await expect.poll(leader.tab.kind).toBe('live')
      await other.page.close()
      await stream.append('d')
      await expect.poll(leader.tab.bodies).toEqual(['a', 'b', 'c', 'd'])
    })
  },
  { launch: launchProcess },
)

async function setLifecycle(browser: Browser, page: Page, state: 'frozen' | 'active'): Promise<void> {
  const session = await browser.context.newCDPSession(page)
  await session.send('Page.setWebLifecycleState', { state })
  await session.detach()
}
