// @module-tag slow

import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveDirectory } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { bundledExample } from './bundled-example.ts'

const PAGE = 'docs/service-worker.md'

describeInChromium(PAGE, () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'headwater-docs-'))
    const html =
      '<!doctype html><title>page</title><link rel="icon" href="data:,"><script type="module" src="page.js"></script>'
    await writeFile(join(directory, 'index.html'), html)
    await writeFile(join(directory, 'page.js'), await bundledExample(PAGE, 'page', 'esm'))
    await writeFile(
      join(directory, 'service-worker.js'),
      await bundledExample(PAGE, 'service-worker', 'iife'),
    )
    server = await serveDirectory(directory)
  })
  afterAll(() => server?.remove())

  it('the page prints the records that it appended through its service worker', async () => {
    const page = await browser.page('about:blank')
    const printed: string[] = []
    page.on('console', (message) => printed.push(message.text()))
    await page.goto(server.url)
    await expect.poll(() => printed).toEqual(['200 written in a page'])
    expect([...server.requests].sort()).toEqual(['/', '/page.js', '/service-worker.js'])
  })
})
