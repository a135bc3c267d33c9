// @module-tag slow

import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { launchProcess } from '../chromium.ts'
import type * as Engine from '../pages/indexeddb-engine.ts'
import { type Browser, inChromium, scriptIn } from '../support.ts'

const BATCH = 40

inChromium('IndexedDB survives the end of a page', (browser) => {
  it('keeps acknowledged batches, and no partial one, if the page is reloaded', async () => {
    const page = await browser.page()
    const acknowledged = await appendFor(page, 'reload', 30)
    await page.reload()
    await expectBatches(page, 'reload', acknowledged)
  })

  it('keeps all acknowledged batches, and no partial one, if the tab crashes during appends', async () => {
    const page = await browser.context.newPage()
    await page.goto(browser.origin)
    const acknowledged = await appendFor(page, 'crash', 30)
    await crash(browser, page)
    await page.close()
    await expectBatches(await browser.page(), 'crash', acknowledged)
  })
})

inChromium(
  'IndexedDB survives the end of the browser',
  (browser) => {
    it('keeps acknowledged batches, and no partial one, if the browser is killed', async () => {
      const page = await browser.context.newPage()
      await page.goto(browser.origin)
      const acknowledged = await appendFor(page, 'killed', 30)
      await browser.restart('kill')
      await expectBatches(await browser.page(), 'killed', acknowledged)
    })
  },
  { launch: launchProcess },
)

/**
 * Makes the page append batches until it ends. Resolves once `count` were acknowledged, to the growing set of
 * acknowledged batches.
 */
async function appendFor(page: Page, name: string, count: number): Promise<Set<number>> {
  const acknowledged = new Set<number>()
  await page.exposeFunction('acknowledged', (batch: number) => void acknowledged.add(batch))
  const engine = await scriptIn<typeof Engine>(page, 'indexeddb-engine')
  await engine.openEngine(name)
  // Rejects when the page ends.
  engine.appendForever(BATCH).catch(() => {})
  await expect.poll(() => acknowledged.size).toBeGreaterThanOrEqual(count)
  return acknowledged
}

/** Expects all acknowledged batches, no partial batch, and an append to succeed. */
async function expectBatches(page: Page, name: string, acknowledged: ReadonlySet<number>): Promise<void> {
  const engine = await scriptIn<typeof Engine>(page, 'indexeddb-engine')
  await engine.openEngine(name)
  const bodies = await engine.readAll()
  const batches = Array.from({ length: bodies.length / BATCH }, (_, i) =>
    bodies.slice(i * BATCH, (i + 1) * BATCH),
  )
  expect(bodies.length % BATCH).toBe(0)
  for (const batch of batches) {
    const [number] = batch[0]!.split('/')
    expect(batch).toEqual(Array.from({ length: BATCH }, (_, index) => `${number}/${index}`))
  }
  const stored = new Set(batches.map((batch) => Number(batch[0]!.split('/')[0])))
  expect([...acknowledged].filter((batch) => !stored.has(batch))).toEqual([])
  expect(stored.size).toBe(batches.length)
  expect(await engine.append(['next'])).toBe(bodies.length)
  await engine.closeEngine()
}

async function crash(browser: Browser, page: Page): Promise<void> {
  const session = await browser.context.newCDPSession(page)
  const crashed = page.waitForEvent('crash')
  // Never resolves.
  session.send('Page.crash').catch(() => {})
  await crashed
}
