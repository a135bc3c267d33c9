// @module-tag slow

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import * as vite from 'vite'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { inChromium } from '../browser/support.ts'
import { namedExample } from '../docs/examples.ts'
import { type InstalledApp, installApp } from './installed-app.ts'

const HTML = `<!doctype html>
<html lang="en">
<head><title>Rooms</title><link rel="icon" href="data:,"></head>
<body><div id="root"></div><script type="module" src="/src/main.tsx"></script></body>
</html>`

inChromium('the React app of docs/react.md', (browser) => {
  let app: InstalledApp
  beforeAll(async () => {
    app = await installApp(['react', 'react-dom', 'scheduler'])
    await writeFile(join(app.directory, 'index.html'), HTML)
    await writeFile(
      join(app.directory, 'src', 'main.tsx'),
      await namedExample('docs/react.md', 'main', 'tsx'),
    )
  })
  afterAll(() => app?.remove())

  async function serveDev(): Promise<string> {
    const server = await vite.createServer({ ...config(), server: { port: 0, host: '127.0.0.1' } })
    onTestFinished(() => server.close())
    await server.listen()
    return server.resolvedUrls!.local[0]!
  }

  async function serveBuild(): Promise<string> {
    await vite.build(config())
    const server = await vite.preview({ ...config(), preview: { port: 0, host: '127.0.0.1' } })
    onTestFinished(() => server.close())
    return server.resolvedUrls!.local[0]!
  }

  const config = (): vite.InlineConfig => ({ root: app.directory, configFile: false, logLevel: 'error' })

  it.each([
    ['the development server of Vite, in StrictMode', serveDev],
    ['a production build of Vite', serveBuild],
  ])('shows sent messages, in every tab and after a reload, with %s', async (_, serve) => {
    const url = await serve()
    const page = await openPage(url)
    await send(page, 'hello')
    await expectMessages(page, ['hello'])
    const other = await openPage(url)
    await expectMessages(other, ['hello'])
    await send(other, 'hi')
    await expectMessages(page, ['hello', 'hi'])
    await page.getByRole('button', { name: 'random' }).click()
    await expectMessages(page, [])
    await send(other, 'unseen')
    await page.getByRole('button', { name: 'general' }).click()
    await expectMessages(page, ['hello', 'hi', 'unseen'])
    await page.reload()
    await expectMessages(page, ['hello', 'hi', 'unseen'])
  })

  async function openPage(url: string): Promise<Page> {
    const page = await browser.page()
    // React reports mismatches and broken rules on the console.
    const problems: string[] = []
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problems.push(message.text())
    })
    onTestFinished(() => expect(problems).toEqual([]))
    await page.goto(url)
    await page.getByLabel('Message').waitFor()
    return page
  }
})

async function send(page: Page, message: string): Promise<void> {
  await page.getByLabel('Message').fill(message)
  await page.getByLabel('Message').press('Enter')
}

function expectMessages(page: Page, messages: readonly string[]): Promise<void> {
  const shown = () => page.getByRole('listitem').allTextContents()
  return expect.poll(shown).toEqual(messages)
}
