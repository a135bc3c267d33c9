// @module-tag slow

import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveDirectory } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { bundledExample } from '../docs/bundled-example.ts'
import { expectNoProblems } from './support.ts'

/** The page of an app, with styles that would change the console if they reached it. */
const HTML = `<!doctype html><html lang="en"><title>app</title><link rel="icon" href="data:,">
<style>button { font-size: 40px; color: red } .row { display: none }</style>
<button id="developer">Developer</button><h1>An app</h1>
<div id="panel" style="height: 600px"></div><script type="module" src="page.js"></script>`

describeInChromium('the developer panel of docs/console.md, on an engine in IndexedDB', () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'headwater-console-panel-'))
    await writeFile(join(directory, 'index.html'), HTML)
    await writeFile(join(directory, 'page.js'), await bundledExample('docs/console.md', 'panel', 'esm'))
    server = await serveDirectory(directory)
  })
  afterAll(() => server?.remove())

  it('shows and changes the streams of the app, in its own styles, and is removed again', async () => {
    const page = await browser.page('about:blank')
    expectNoProblems(page, server.url)
    const requests: string[] = []
    page.on('request', (request) => requests.push(new URL(request.url()).pathname))
    await page.goto(server.url)
    const developer = page.getByRole('button', { name: 'Developer' })
    const host = page.locator('#panel > div')
    // The button works once the script has opened the engine.
    const mountedIn = async (tab: Page) => {
      const panel = tab.locator('#panel > div')
      if ((await panel.count()) === 0) await tab.getByRole('button', { name: 'Developer' }).click()
      return panel.count()
    }
    await expect.poll(() => mountedIn(page)).toBe(1)
    const address = page.url()
    await page.getByText('in this page').waitFor()
    await page.getByRole('link', { name: 'my-app' }).click()
    await page.getByRole('link', { name: 'notes' }).click()
    await page.locator('.row', { hasText: 'written by the app' }).click()
    expect(await page.getByRole('button', { name: 'Copy as curl' }).count()).toBe(0)
    const sizes = () =>
      page.evaluate(() => {
        const inPanel = document.querySelector('#panel > div')!.shadowRoot!.querySelector('button')!
        return [getComputedStyle(inPanel), getComputedStyle(document.querySelector('h1')!)].map(
          ({ fontSize, fontFamily }) => [fontSize, fontFamily.includes('system-ui')],
        )
      })
    expect(await sizes()).toEqual([
      ['13px', true],
      ['32px', false],
    ])
    await page.getByRole('link', { name: 'Append' }).click()
    await page.getByLabel('Body').fill('written by the console')
    await page.getByRole('button', { name: 'Append', exact: true }).click()
    await page.getByText('Appended 1 record: 1 to 1').waitFor()
    await page.getByRole('link', { name: 'Records' }).click()
    await page.locator('.row', { hasText: 'written by the console' }).waitFor()
    // Another tab of the app has the same database, and appends to it when it starts.
    const other = await browser.page('about:blank')
    expectNoProblems(other, server.url)
    await other.goto(server.url)
    await expect.poll(() => page.locator('.row').count()).toBe(3)
    await expect.poll(() => mountedIn(other)).toBe(1)
    await other.getByRole('link', { name: 'my-app' }).click()
    await other.getByRole('link', { name: 'notes' }).click()
    await expect.poll(() => other.locator('.row').count()).toBe(3)
    await other.close()
    await page.getByRole('link', { name: 'Usage' }).last().click()
    await page.getByText('open the engine with `usage: usageMetrics()`').first().waitFor()
    await page.getByRole('link', { name: 'Usage' }).first().click()
    await page.getByText('open the engine with `usage: usageMetrics()`').first().waitFor()
    // The address and the network belong to the app.
    expect(page.url()).toBe(address)
    expect(requests.filter((path) => path.startsWith('/v1'))).toEqual([])
    await developer.click()
    await expect.poll(() => host.count()).toBe(0)
    await developer.click()
    await page.getByRole('heading', { name: 'Basins' }).waitFor()
  })
})
