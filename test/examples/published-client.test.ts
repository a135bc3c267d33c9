// @module-tag slow

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
// @ts-expect-error: a plain script without types
import { buildExample } from '../../examples/build.mjs'
import { type AppServer, serveDirectory, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { serviceWorkersOf } from '../browser/service-workers.ts'

const READY = 'Ready, with or without a network.'

describeInChromium('the example published-client', () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    server = await serveExample('published-client')
  })
  afterAll(() => server?.remove())

  async function open(): Promise<Page> {
    const page = await browser.page(server.url)
    await isReady(page)
    return page
  }
  const isReady = (page: Page) => expect.poll(() => page.locator('output').textContent()).toBe(READY)
  const notesOf = (page: Page) =>
    page.getByRole('list', { name: 'Notes' }).getByRole('listitem').allTextContents()
  const shows = (page: Page, notes: string[]) => expect.poll(() => notesOf(page)).toEqual(notes)
  async function append(page: Page, note: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Note' }).fill(note)
    await page.getByRole('button', { name: 'Append' }).click()
  }

  it('appends and follows live in two tabs, without requests to its server', async () => {
    const [first, second] = [await open(), await open()]
    await append(first, 'first')
    await shows(second, ['first'])
    await append(second, 'second')
    await shows(first, ['first', 'second'])
    expect(server.requests.filter((path) => path.startsWith('/v1'))).toEqual([])
  })

  it('reports a service worker that cannot be installed because a file is missing', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'headwater-example-'))
    const incomplete = await serveDirectory(await buildExample('published-client', directory))
    onTestFinished(() => incomplete.remove())
    await rm(join(directory, 'style.css'))
    const page = await browser.page(incomplete.url)
    await expect
      .poll(() => page.locator('output').textContent())
      .toBe('the service worker could not be installed')
  })

  it('works offline and without its server, after a reload too', async () => {
    const page = await open()
    await server.stop()
    await browser.context.setOffline(true)
    await append(page, 'offline')
    await shows(page, ['first', 'second', 'offline'])
    await page.reload()
    await isReady(page)
    await shows(page, ['first', 'second', 'offline'])
    await append(page, 'offline again')
    await shows(page, ['first', 'second', 'offline', 'offline again'])
  })

  it('works offline in a browser that was restarted', async () => {
    await browser.restart()
    await browser.context.setOffline(true)
    const page = await open()
    await shows(page, ['first', 'second', 'offline', 'offline again'])
    await append(page, 'after a restart')
    await shows(page, ['first', 'second', 'offline', 'offline again', 'after a restart'])
  })

  it('appends, and continues to follow, after the browser stopped the service worker', async () => {
    const [first, second] = [await open(), await open()]
    const workers = await serviceWorkersOf(first)
    const before = await notesOf(first)
    await workers.stop()
    await append(first, 'after a stop')
    await shows(first, [...before, 'after a stop'])
    await shows(second, [...before, 'after a stop'])
    // As often as a browser does while nothing happens: each time the followers come back.
    for (let i = 0; i < 4; i++) {
      await workers.stop()
      await workers.started()
    }
    await append(second, 'after many')
    await shows(first, [...before, 'after a stop', 'after many'])
    await shows(second, [...before, 'after a stop', 'after many'])
  })

  it('finds its service worker again after a reload that bypasses it', async () => {
    await browser.context.setOffline(false)
    await server.start()
    const page = await open()
    const devTools = await page.context().newCDPSession(page)
    await devTools.send('Page.reload', { ignoreCache: true })
    await expect.poll(() => server.requests).toContain('/main.js')
    await isReady(page)
  })
})
