// @module-tag slow

import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveDirectory } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { bundledExample } from './bundled-example.ts'

describeInChromium('docs/browser.md', () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'headwater-docs-tab-'))
    const html =
      '<!doctype html><title>page</title><link rel="icon" href="data:,"><script type="module" src="page.js"></script>'
    await writeFile(join(directory, 'index.html'), html)
    await writeFile(join(directory, 'page.js'), await bundledExample('docs/browser.md', 'tab', 'esm'))
    server = await serveDirectory(directory)
  })
  afterAll(() => server?.remove())

  it('the example prints the records that two engines on one database read', async () => {
    const page = await browser.page('about:blank')
    const printed: string[] = []
    page.on('console', (message) => printed.push(message.text()))
    page.on('pageerror', (error) => printed.push(String(error)))
    await page.goto(server.url)
    await expect.poll(() => printed).toEqual(['0 written here', '1 seen there', 'true boolean'])
  })
})
