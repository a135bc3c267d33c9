import type { CDPSession } from 'playwright-core'
import { expect, it } from 'vitest'
import type * as Quota from './pages/indexeddb-quota.ts'
import type { Told } from './pages/indexeddb-quota.ts'
import { type Browser, inChromium, PATIENCE, type Remote, scriptIn } from './support.ts'

const MB = 1_000_000
/** A file for Chromium: its space is free as soon as it is deleted. */
const LARGE = 500_000
const QUOTA_BYTES = 8 * MB

inChromium('IndexedDB, when space runs out', (browser) => {
  it('appends fail with a typed error, earlier records stay, and a trim makes room', async () => {
    const { tab, end } = await shortOfSpace(browser)
    const appended = await fill(tab)
    expect(await tab.append(LARGE)).toEqual({ kind: 'quota', nothingWritten: true })
    const records = await tab.stored()
    expect(records).toEqual([[0, 5], ...Array.from({ length: appended }, (_, i) => [i + 1, LARGE])])
    await expect
      .poll(() => tab.lowSpace(), PATIENCE)
      .toContainEqual(expect.objectContaining({ isFull: true }))

    await tab.trim(appended)
    await expect.poll(() => tab.append(LARGE), PATIENCE).toBeUndefined()
    const left = await tab.stored()
    expect(left.map(([seqNum]) => seqNum)).toEqual([appended, appended + 1, appended + 2])
    await end()
  })

  it('a trim finds room where no append does', async () => {
    const { tab, end } = await shortOfSpace(browser)
    const appended = await fill(tab)
    for (const bytes of [100_000, 20_000, 5_000, 1_000, 100, 1, 1, 1]) {
      for (
        let failure = await tab.append(bytes);
        failure?.kind !== 'quota';
        failure = await tab.append(bytes)
      ) {
        expect(failure).toBeUndefined()
      }
    }
    await tab.trim(appended)
    await expect.poll(() => tab.append(LARGE), PATIENCE).toBeUndefined()
    await end()
  })

  it('the oldest are trimmed by themselves, and appends go on', async () => {
    const { tab, end } = await shortOfSpace(browser)
    await tab.trimByItself(0.5)
    const appended = await fill(tab)
    // What was refused is what is tried again.
    for (let i = 0; i < 20; i++) await expect.poll(() => tab.append(LARGE), PATIENCE).toBeUndefined()
    const records = await tab.stored()
    expect(records[0]![0]).toBeGreaterThan(0)
    const large = records.filter(([, bytes]) => bytes === LARGE)
    expect(large.length).toBeLessThan(appended + 20)
    await end()
  })
})

inChromium(
  'IndexedDB, where the browser tells the quota',
  (browser) => {
    it('tells that space is low before the quota is hit', async () => {
      const { tab, end } = await shortOfSpace(browser)
      expect((await tab.usage()).quotaBytes).toBe(QUOTA_BYTES)
      for (let i = 0; (await tab.lowSpace()).length === 0; i++) {
        expect(i).toBeLessThan(30)
        expect(await tab.append(LARGE)).toBeUndefined()
      }
      const [{ usedBytes, quotaBytes, isFull }] = (await tab.lowSpace()) as [Told]
      expect(isFull).toBe(false)
      expect(quotaBytes).toBe(QUOTA_BYTES)
      expect(usedBytes).toBeGreaterThanOrEqual(0.8 * QUOTA_BYTES)
      await end()
    })
  },
  // Else it tells every page that there are 10 GiB left.
  { args: ['--disable-features=StaticStorageQuota'] },
)

/** A tab with an empty stream, on an origin with little space. */
async function shortOfSpace(
  browser: Browser,
): Promise<{ tab: Remote<typeof Quota>; end: () => Promise<void> }> {
  const page = await browser.page()
  const session = await browser.context.newCDPSession(page)
  await clear(session, browser.origin)
  // Before anything is written: Chromium remembers for a while how much is left.
  await session.send('Storage.overrideQuotaForOrigin', { origin: browser.origin, quotaSize: QUOTA_BYTES })
  const tab = await scriptIn<typeof Quota>(page, 'indexeddb-quota')
  await tab.start()
  const end = async () => {
    await session.send('Storage.overrideQuotaForOrigin', { origin: browser.origin })
  }
  return { tab, end }
}

/** Of the test before. */
async function clear(session: CDPSession, origin: string): Promise<void> {
  await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'indexeddb' })
}

/** Appends until that is refused; resolves to how many were made. */
async function fill(tab: Remote<typeof Quota>): Promise<number> {
  let appended = 0
  while ((await tab.append(LARGE)) === undefined) expect(++appended).toBeLessThan(30)
  expect(appended).toBeGreaterThan(3)
  return appended
}
