// @module-tag slow

import type { CDPSession } from 'playwright-core'
import { expect, it } from 'vitest'
import type { LowSpace } from '../../../adapters/storage/indexeddb/index.ts'
import type * as Quota from '../pages/indexeddb-quota.ts'
import { type Browser, inChromium, type Remote, scriptIn } from '../support.ts'

const MB = 1_000_000
/** Large enough to be stored in a file, whose space is free once it is deleted. */
const LARGE = 500_000
const QUOTA_BYTES = 8 * MB

inChromium('IndexedDB without space', (browser) => {
  it('rejects appends with `quota`, keeps records, and accepts appends after a trim', async () => {
    const { tab, end } = await shortOfSpace(browser)
    const appended = await fill(tab)
    expect(await tab.append(LARGE)).toEqual({ kind: 'quota', nothingWritten: true })
    const records = await tab.storedRecords()
    expect(records).toEqual([[0, 5], ...Array.from({ length: appended }, (_, i) => [i + 1, LARGE])])
    await expect.poll(() => tab.lowSpaceEvents()).toContainEqual(expect.objectContaining({ isFull: true }))

    await tab.trim(appended)
    await expect.poll(() => tab.append(LARGE)).toBeUndefined()
    const remaining = await tab.storedRecords()
    expect(remaining.map(([seqNum]) => seqNum)).toEqual([appended, appended + 1, appended + 2])
    await end()
  })
})

inChromium(
  'IndexedDB in a browser that reports the quota',
  (browser) => {
    it('lowSpace$ emits before the quota is hit', async () => {
      const { tab, end } = await shortOfSpace(browser)
      expect((await tab.usage()).quotaBytes).toBe(QUOTA_BYTES)
      for (let i = 0; (await tab.lowSpaceEvents()).length === 0; i++) {
        expect(i).toBeLessThan(30)
        expect(await tab.append(LARGE)).toBeUndefined()
      }
      const [{ usedBytes, quotaBytes, isFull }] = (await tab.lowSpaceEvents()) as [LowSpace]
      expect(isFull).toBe(false)
      expect(quotaBytes).toBe(QUOTA_BYTES)
      expect(usedBytes).toBeGreaterThanOrEqual(0.8 * QUOTA_BYTES)
      await end()
    })
  },
  // With this feature, Chromium reports 10 GiB of free space to every page.
  { args: ['--disable-features=StaticStorageQuota'] },
)

/** Opens a tab with an empty stream, on an origin with little space. */
async function shortOfSpace(
  browser: Browser,
): Promise<{ tab: Remote<typeof Quota>; end: () => Promise<void> }> {
  const page = await browser.page()
  const session = await browser.context.newCDPSession(page)
  await clear(session, browser.origin)
  // Before any write, because Chromium caches the remaining space.
  await session.send('Storage.overrideQuotaForOrigin', { origin: browser.origin, quotaSize: QUOTA_BYTES })
  const tab = await scriptIn<typeof Quota>(page, 'indexeddb-quota')
  await tab.start()
  const end = async () => {
    await session.send('Storage.overrideQuotaForOrigin', { origin: browser.origin })
  }
  return { tab, end }
}

/** Deletes the data of earlier tests. */
async function clear(session: CDPSession, origin: string): Promise<void> {
  await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'indexeddb' })
}

/** Appends until an append is rejected. Resolves to the number of appends before that. */
async function fill(tab: Remote<typeof Quota>): Promise<number> {
  let appended = 0
  while ((await tab.append(LARGE)) === undefined) expect(++appended).toBeLessThan(30)
  expect(appended).toBeGreaterThan(3)
  return appended
}
