// @module-tag slow

import { beforeAll, expect, it } from 'vitest'
import { conformanceSuite } from '../../../adapters/conformance/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import type * as Conformance from '../pages/indexeddb-conformance.ts'
import { inChromium, type Remote, scriptIn } from '../support.ts'

/** The titles of the tests that apply, which must be the same in Node and in the page. */
const titles = conformanceSuite({
  manifest: indexedDb('').manifest,
  make: () => Promise.reject(new Error('runs in pages')),
  seeds: [1],
}).flatMap(({ title, skip }) => (skip === undefined ? [title] : []))

inChromium('IndexedDB in Chromium conforms to the storage contract', (browser) => {
  // One page for all tests, because opening a page takes longer than a test.
  let page: Remote<typeof Conformance>
  beforeAll(async () => {
    const opened = await browser.context.newPage()
    await opened.goto(browser.origin)
    page = await scriptIn(opened, 'indexeddb-conformance')
  })

  it('the page runs all tests that apply', async () => {
    expect(await page.titles()).toEqual(titles)
  })

  it.each(titles)('%s', async (title) => {
    await page.run(title)
  })
})
