// @module-tag slow

import { expect, it } from 'vitest'
import { launchProcess, setLifecycle } from './chromium.ts'
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
      await setLifecycle(leader.page, 'frozen')
      await stream.append('c')
      await expect.poll(other.tab.bodies).toEqual(['a', 'b', 'c'])
      await expect.poll(other.tab.kind).toBe('live')
      await setLifecycle(leader.page, 'active')
      await expect.poll(leader.tab.kind).toBe('live')
      await other.page.close()
      await stream.append('d')
      await expect.poll(leader.tab.bodies).toEqual(['a', 'b', 'c', 'd'])
    })
  },
  { launch: launchProcess },
)
