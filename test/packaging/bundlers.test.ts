// @module-tag slow

import { afterAll, beforeAll, expect, it } from 'vitest'
import { inChromium } from '../browser/support.ts'
import {
  type Bundler,
  bundleWithEsbuild,
  bundleWithVite,
  bundleWithWebpack,
  bundleWithWebpackIntoOneFile,
} from './bundlers.ts'
import { type InstalledApp, installApp } from './installed-app.ts'
import { serveDirectory } from './serve-directory.ts'

/** Of `app/scenario.js`, on any storage. */
const MESSAGES = {
  bodies: ['a', 'b', 'c'],
  late: { streams: ['chats/42'], seqNum: 3, secret: 'secret', refused: 'permission_denied' },
  failures: [],
}
const ON_EVERY_STORAGE = { memory: MESSAGES, indexeddb: MESSAGES }

interface App {
  append(text: string): Promise<number>
  tail(): Promise<number>
  /** The number of access tokens, or the error code. */
  tokens(): Promise<number | string>
  close(): Promise<void>
}

declare global {
  var openApp: () => Promise<App>
  var inPage: () => Promise<unknown>
  var inWorker: () => Promise<unknown>
}

inChromium('an app with the package, bundled without configuration', (browser) => {
  let app: InstalledApp
  beforeAll(async () => {
    app = await installApp()
  })
  afterAll(() => app?.remove())

  async function pageOf(bundler: Bundler) {
    const url = await serveDirectory(await bundler(app.directory))
    const page = await browser.page()
    await page.goto(url)
    return page
  }

  it.each([
    ['Vite', bundleWithVite],
    ['esbuild, into one file', bundleWithEsbuild],
  ])('by %s runs in a page, and in a worker whose code is inlined', async (_, bundler) => {
    const page = await pageOf(bundler)
    expect(await page.evaluate(() => inPage())).toEqual(ON_EVERY_STORAGE)
    expect(await page.evaluate(() => inWorker())).toEqual(ON_EVERY_STORAGE)
  })

  it('works without a chunk that cannot be fetched, and fetches it at the next use', async () => {
    const page = await pageOf(bundleWithVite)
    const first = await page.evaluateHandle(() => openApp())
    expect(await first.evaluate((app) => app.append('a'))).toBe(1)
    await first.evaluate((app) => app.close())
    const chunk = '**/assets/tokens-*.js'
    await page.route(chunk, (route) => route.abort())
    await page.reload()
    const second = await page.evaluateHandle(() => openApp())
    expect(await second.evaluate((app) => app.tail())).toBe(1)
    expect(await second.evaluate((app) => app.append('b'))).toBe(2)
    expect(await second.evaluate((app) => app.tokens())).toBe('unavailable')
    await page.unroute(chunk)
    expect(await second.evaluate((app) => app.tokens())).toBe(0)
    await second.evaluate((app) => app.close())
  })

  it.each([
    ['webpack', bundleWithWebpack],
    ['webpack, into one file', bundleWithWebpackIntoOneFile],
  ])('by %s runs in a page', async (_, bundler) => {
    const page = await pageOf(bundler)
    expect(await page.evaluate(() => inPage())).toEqual(ON_EVERY_STORAGE)
  })
})
