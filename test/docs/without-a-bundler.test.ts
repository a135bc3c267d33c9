// @module-tag slow

import { copyFile, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveDirectory } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { namedExample, PROJECT } from './examples.ts'

const PAGES = { module: ['0 hello'], 'import-map': ['1'] }

describeInChromium('headwater/browser in a page without a bundler', () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'headwater-no-bundler-'))
    await copyFile(join(PROJECT, 'dist/browser.js'), join(directory, 'browser.js'))
    for (const name of Object.keys(PAGES)) {
      const html = await namedExample('docs/browser.md', name, 'html')
      await writeFile(
        join(directory, `${name}.html`),
        html.replace('<!doctype html>', '$&<link rel="icon" href="data:,">'),
      )
    }
    server = await serveDirectory(directory)
  })
  afterAll(() => server?.remove())

  it.each(Object.entries(PAGES))('%s.html of docs/browser.md prints its records', async (name, expected) => {
    const page = await browser.page('about:blank')
    const printed: string[] = []
    page.on('console', (message) => printed.push(message.text()))
    page.on('pageerror', (error) => printed.push(String(error)))
    await page.goto(`${server.url}${name}.html`)
    await expect.poll(() => printed).toEqual(expected)
    // The page, and one file.
    expect(server.requests.slice(-2)).toEqual([`/${name}.html`, '/browser.js'])
  })
})
