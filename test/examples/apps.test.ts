// @module-tag slow

import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { ChatPage } from './chat-page.ts'
import { TodoPage } from './todo-page.ts'

const DESKTOP = [1100, 'light'] as const
const LOOKS = [DESKTOP, [390, 'dark']] as const
const MARKUP = '<img src=x onerror="document.title=1">'

/** Serves an example until the test ends. */
async function serve(name: string): Promise<AppServer> {
  const server = await serveExample(name)
  onTestFinished(() => server.remove())
  return server
}

/** Checks accessibility on a desktop and in dark colours on a phone, and that nothing is too wide. */
async function looksGood(page: Page, looks: readonly (readonly [number, 'light' | 'dark'])[] = LOOKS) {
  for (const [width, colorScheme] of looks) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 780 })
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
  }
}

describeInChromium('the example', () => {
  // The published client of Durable Streams leaves a promise of each stream that breaks off unhandled.
  const expected = /network error|Failed to fetch/
  const [one, other] = [restartableBrowser({ expected }), restartableBrowser({ expected })]

  it('local-first-chat brings two people together, also offline or while the server is down', async () => {
    const server = await serve('local-first-chat')
    const openChat = async (browser: typeof one, name: string) => {
      const chat = new ChatPage(await browser.page(server.url))
      await chat.isReady()
      await chat.call(name)
      return chat
    }
    const [ada, ben] = [await openChat(one, 'Ada'), await openChat(other, 'Ben')]
    await ada.begin('general')
    await ben.enter('general')
    await ada.say(MARKUP)
    await ben.shows(MARKUP)
    onTestFinished(() => other.context.setOffline(false))
    await other.context.setOffline(true)
    // Connections that are open would stay open.
    await ben.page.reload()
    await ben.say('offline')
    await ada.say('online')
    await ada.hasSent()
    await ben.shows(MARKUP, 'offline')
    await other.context.setOffline(false)
    for (const chat of [ada, ben]) await chat.shows(MARKUP, 'online', 'offline')
    await ben.hasSent()
    await server.stop()
    await ada.say('without a server')
    await looksGood(ada.page)
    await one.restart()
    const again = await openChat(one, 'Ada')
    await again.enter('general')
    await again.shows(MARKUP, 'online', 'offline', 'without a server')
    await server.start()
    await again.hasSent()
    await ben.shows(MARKUP, 'online', 'offline', 'without a server')
    expect(await ben.page.locator('img:not([src="icon.svg"])').count()).toBe(0)
  })

  it('shared-todo works while its server is down, converges, and undoes', async () => {
    const server = await serve('shared-todo')
    const [mine, theirs] = [
      new TodoPage(await one.page(server.url)),
      new TodoPage(await other.page(server.url)),
    ]
    await mine.add('Milk', 'Bread')
    await theirs.shows('Milk', 'Bread')
    await mine.remove('Milk')
    await theirs.shows('Bread')
    await mine.undo.click()
    // Back in its place.
    for (const todo of [mine, theirs]) await todo.shows('Milk', 'Bread')
    for (const todo of [mine, theirs]) await todo.isOfflineReady()
    await server.stop()
    await mine.check('Bread')
    await mine.add('Tea')
    await theirs.remove('Bread')
    await mine.shows('Milk', '[x] Bread *', 'Tea *')
    await mine.isConnection('Offline · 2 changes wait')
    await mine.page.reload()
    await mine.shows('Milk', '[x] Bread *', 'Tea *')
    await looksGood(mine.page)
    await server.start()
    for (const todo of [mine, theirs]) {
      await todo.shows('Milk', 'Tea')
      await todo.isConnection('Up to date')
    }
  })

  it('published-client follows in two tabs, offline and in a browser that was restarted too', async () => {
    const server = await serve('published-client')
    const open = async () => {
      const page = await one.page(server.url)
      await page.getByText('Ready, with or without a network.').waitFor()
      return page
    }
    const append = async (page: Page, note: string) => {
      await page.getByRole('textbox', { name: 'Note' }).fill(note)
      await page.getByRole('button', { name: 'Append' }).click()
    }
    const shows = (page: Page, ...notes: string[]) => {
      const list = page.getByRole('list', { name: 'Notes' }).getByRole('listitem')
      return expect.poll(() => list.allTextContents()).toEqual(notes)
    }
    const [first, second] = [await open(), await open()]
    await append(first, 'first')
    await shows(second, 'first')
    expect(server.requests.filter((path) => path.startsWith('/v1'))).toEqual([])
    onTestFinished(() => one.context.setOffline(false))
    await server.stop()
    await one.context.setOffline(true)
    await append(second, 'offline')
    await shows(first, 'first', 'offline')
    await one.restart()
    await one.context.setOffline(true)
    const again = await open()
    await shows(again, 'first', 'offline')
  })

  it('live-logs follows the output of a program, and shows the lines that match a search', async () => {
    const server = await serve('live-logs')
    const page = await one.page(server.url)
    await page.getByText('listening on port 3000').waitFor()
    const append = async (...lines: string[]) => {
      const response = await fetch(`${server.url}v1/streams/app/records`, {
        method: 'POST',
        headers: { 'svc-basin': 'logs', 'content-type': 'application/json' },
        body: JSON.stringify({ records: lines.map((body) => ({ body })) }),
      })
      expect(response.status).toBe(200)
    }
    await append('ERROR the <b>first</b> needle', 'DEBUG the second needle', 'WARN something else')
    const visible = () => page.locator('#lines li:visible span').allTextContents()
    await page.getByRole('searchbox', { name: 'Search' }).fill('NEEDLE')
    await expect.poll(visible).toEqual(['the <b>first</b> needle', 'the second needle'])
    await page.getByRole('checkbox', { name: /DEBUG/ }).uncheck()
    // Lines that arrive later are searched too.
    await append('INFO one more needle', 'DEBUG a hidden needle')
    await expect.poll(visible).toEqual(['the <b>first</b> needle', 'one more needle'])
    await looksGood(page)
  })

  it('work-queue does every job once, although a worker is killed', async () => {
    const server = await serve('work-queue')
    const page = await one.page(server.url)
    await page.getByRole('button', { name: 'Add 12 jobs' }).click()
    await page.getByRole('button', { name: 'Kill worker-2' }).click()
    await page.getByRole('button', { name: 'Start worker-2' }).waitFor()
    await expect.poll(() => page.getByRole('status').textContent()).toContain('12 of 12 jobs done, each once')
    const url = `${server.url}v1/streams/events/records?seq_num=0`
    const response = await fetch(url, { headers: { 'svc-basin': 'work-queue' } })
    const { records } = (await response.json()) as { records: { body: string }[] }
    const done = records.map(({ body }) => JSON.parse(body)).filter(({ type }) => type === 'done')
    expect(new Set(done.map(({ id }) => id)).size).toBe(12)
    expect(new Set(done.map(({ worker }) => worker))).toContain('worker-1')
    await looksGood(page)
  })

  it('resumable-chat continues an answer for all viewers after a reload and a restart', async () => {
    const server = await serve('resumable-chat')
    const openChat = async (browser: typeof one) => {
      const page = await browser.page(`${server.url}#a-chat`)
      await page.getByLabel('Question').waitFor()
      return page
    }
    const messages = (page: Page) => page.locator('ol li').allTextContents()
    const [asking, watching] = [await openChat(one), await openChat(other)]
    await asking.getByLabel('Question').fill('why?')
    await asking.getByRole('button', { name: 'Ask' }).click()
    for (const page of [asking, watching]) {
      await expect.poll(async () => (await messages(page)).at(1)?.length).toBeGreaterThan(20)
    }
    await server.stop()
    await server.start()
    await asking.reload()
    for (const page of [asking, watching]) {
      await expect
        .poll(() => messages(page))
        .toEqual([
          'why?',
          expect.stringMatching(/^You asked: “why\?”\. This answer .* still there, and the rest follows\.$/),
        ])
    }
    await looksGood(asking)
  })

  it('live-query keeps a query up to date in two browsers, and after a reload', async () => {
    const server = await serve('live-query')
    const [mine, theirs] = [await one.page(server.url), await other.page(server.url)]
    const shows = (page: Page, ...names: string[]) =>
      expect.poll(() => page.locator('li').allTextContents()).toEqual(names)
    for (const name of ['Pears', 'Apples']) {
      await mine.getByLabel('Item', { exact: true }).fill(name)
      await mine.getByRole('button', { name: 'Add' }).click()
    }
    for (const page of [mine, theirs]) await shows(page, 'Apples', 'Pears')
    await theirs.getByLabel('Pears').click()
    for (const page of [mine, theirs]) await shows(page, 'Apples')
    await expect.poll(() => mine.getByRole('status').textContent()).toBe('1 of 2 bought')
    await mine.reload()
    await shows(mine, 'Apples')
    await looksGood(mine)
  })

  it('shared-document merges what two browsers type in one document, and keeps it', async () => {
    const server = await serve('shared-document')
    const [mine, theirs] = [await one.page(server.url), await other.page(server.url)]
    const textOf = (page: Page) => page.getByLabel('Text')
    const show = async (text: string) => {
      for (const page of [mine, theirs]) await expect.poll(() => textOf(page).inputValue()).toBe(text)
    }
    for (const page of [mine, theirs]) await page.getByText('Up to date').waitFor()
    // As fast as one types, so that most of it is typed while the request with the first letter is under way.
    await textOf(mine).pressSequentially('Hello, world', { delay: 30 })
    await show('Hello, world')
    await textOf(theirs).press('Control+Home')
    await textOf(theirs).pressSequentially('Title: ', { delay: 30 })
    await show('Title: Hello, world')
    await mine.reload()
    await show('Title: Hello, world')
    // Its text field has the width of a desktop.
    await looksGood(mine, [DESKTOP])
  })
})
