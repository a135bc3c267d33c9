import { beforeAll, describe, expect, it } from 'vitest'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { conformanceSuite } from '../../src/storage/conformance/index.ts'
import type * as Conformance from './pages/indexeddb-conformance.ts'
import { inChromium, type Remote, scriptIn } from './support.ts'

/** What applies is the same here and there. */
const titles = conformanceSuite({
  manifest: indexedDb('').manifest,
  make: () => Promise.reject(new Error('runs in pages')),
  seeds: [1, 2],
}).flatMap(({ title, skip }) => (skip === undefined ? [title] : []))

inChromium('IndexedDB in Chromium conforms to the storage contract', (browser) => {
  describe.each(['strict', 'relaxed'] as const)('%s', (durability) => {
    // One page for all: opening them takes longer than the tests.
    let page: Remote<typeof Conformance>
    beforeAll(async () => {
      const opened = await browser.context.newPage()
      await opened.goto(browser.origin)
      page = await scriptIn(opened, 'indexeddb-conformance')
    })

    it('what runs is what applies', async () => {
      expect(await page.titles(durability)).toEqual(titles)
    })

    it.each(titles)('%s', async (title) => {
      await page.run(durability, title)
    })
  })
})
