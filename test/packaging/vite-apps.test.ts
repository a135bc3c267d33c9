// @module-tag slow

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import * as vite from 'vite'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { inChromium } from '../browser/support.ts'
import { namedExample } from '../docs/examples.ts'
import { type InstalledApp, installApp } from './installed-app.ts'

/** The contents of `app/index.js`, on any storage. */
const USED = {
  bodies: ['a', 'b', 'c'],
  streams: ['chats/42'],
  secret: 'secret',
  refused: 'permission_denied',
}

declare global {
  var run: () => Promise<unknown>
}

inChromium('an app with the package, built by Vite without configuration', (browser) => {
  let app: InstalledApp
  beforeAll(async () => {
    app = await installApp(['react', 'react-dom', 'scheduler'])
    const example = await namedExample('docs/react.md', 'main', 'tsx')
    await writeFile(join(app.directory, 'src', 'main.tsx'), example)
  })
  afterAll(() => app?.remove())

  /** Builds and serves a page with this script. */
  async function built(script: string): Promise<string> {
    await writeFile(
      join(app.directory, 'index.html'),
      `<!doctype html><html lang="en"><title>app</title><link rel="icon" href="data:,">
<div id="root"></div><script type="module" src="/src/${script}"></script></html>`,
    )
    const config: vite.InlineConfig = { root: app.directory, configFile: false, logLevel: 'error' }
    await vite.build(config)
    const server = await vite.preview({ ...config, preview: { port: 0, host: '127.0.0.1' } })
    onTestFinished(() => server.close())
    return server.resolvedUrls!.local[0]!
  }

  /** Opens a page, which must not print errors and warnings. */
  async function openPage(url: string): Promise<Page> {
    const page = await browser.page()
    const problems: string[] = []
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problems.push(message.text())
    })
    onTestFinished(() => expect(problems).toEqual([]))
    await page.goto(url)
    return page
  }

  it('runs on every storage', async () => {
    const page = await openPage(await built('index.js'))
    expect(await page.evaluate(() => run())).toEqual({ memory: USED, indexeddb: USED })
  })

  it('shows sent messages in every tab and after a reload, as docs/react.md says', async () => {
    const url = await built('main.tsx')
    const [page, other] = [await openPage(url), await openPage(url)]
    await send(page, 'hello')
    for (const each of [page, other]) await shows(each, ['hello'])
    await send(other, 'hi')
    await shows(page, ['hello', 'hi'])
    await page.getByRole('button', { name: 'random' }).click()
    await shows(page, [])
    await page.getByRole('button', { name: 'general' }).click()
    await shows(page, ['hello', 'hi'])
    await page.reload()
    await shows(page, ['hello', 'hi'])
  })
})

async function send(page: Page, message: string): Promise<void> {
  await page.getByLabel('Message').fill(message)
  await page.getByLabel('Message').press('Enter')
}

function shows(page: Page, messages: readonly string[]): Promise<void> {
  return expect.poll(() => page.getByRole('listitem').allTextContents()).toEqual(messages)
}
