// @module-tag slow

import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'

/** The answer of the model's stand-in to a question. */
const answerTo = (question: string) =>
  `You asked: “${question}”. This answer is written token by token, and each token is a record of a stream. ` +
  'Reload the page while it is being written: the page continues where it was, without a gap or a repeat. ' +
  'Open it in a second tab: both show the same answer. ' +
  'Stop the server and start it again: what was written is still there, and the rest follows.'

describeInChromium('the example resumable-chat', () => {
  // The published client of Durable Streams leaves a promise of each stream that breaks off unhandled.
  const expected = /network error|Failed to fetch/
  const [one, other] = [restartableBrowser({ expected }), restartableBrowser({ expected })]
  let server: AppServer
  beforeAll(async () => {
    server = await serveExample('resumable-chat')
  })
  afterAll(() => server?.remove())

  const messagesOf = (page: Page) => page.locator('ol li').allTextContents()
  const shows = (page: Page, ...messages: string[]) =>
    expect.poll(() => messagesOf(page), { timeout: 30_000 }).toEqual(messages)
  /** Waits until some of the answer is shown, and checks that not all of it is. */
  async function isBeingWritten(page: Page, answer: string): Promise<void> {
    await expect.poll(async () => (await messagesOf(page)).at(-1)?.length).toBeGreaterThan(20)
    const shown = (await messagesOf(page)).at(-1)!
    expect(answer.startsWith(shown)).toBe(true)
    expect(shown.length).toBeLessThan(answer.length)
  }

  async function openChat(name: string, browser = one): Promise<Page> {
    const page = await browser.page(`${server.url}#${name}`)
    await page
      .getByRole('status')
      .filter({ hasText: /Ready|Writing/ })
      .waitFor()
    return page
  }

  async function ask(page: Page, question: string): Promise<void> {
    await page.getByLabel('Question').fill(question)
    await page.getByRole('button', { name: 'Ask' }).click()
  }

  it('shows an answer while it is written, and after a reload', async () => {
    const page = await openChat('reload')
    await ask(page, 'why?')
    await isBeingWritten(page, answerTo('why?'))
    await page.reload()
    await isBeingWritten(page, answerTo('why?'))
    await shows(page, 'why?', answerTo('why?'))
    await page.reload()
    await shows(page, 'why?', answerTo('why?'))
    await ask(page, 'really?')
    await shows(page, 'why?', answerTo('why?'), 'really?', answerTo('really?'))
  })

  it('shows the same answer to viewers that were there before, and that come later', async () => {
    const [asking, before] = [await openChat('viewers'), await openChat('viewers', other)]
    await ask(asking, 'why?')
    await isBeingWritten(before, answerTo('why?'))
    const later = await openChat('viewers', other)
    for (const page of [asking, before, later]) await shows(page, 'why?', answerTo('why?'))
  })

  it('continues after the network was away', async () => {
    const page = await openChat('offline')
    await ask(page, 'why?')
    await isBeingWritten(page, answerTo('why?'))
    await page.context().setOffline(true)
    await page.context().setOffline(false)
    await shows(page, 'why?', answerTo('why?'))
  })

  it('continues after the server has stopped in the middle of an answer', async () => {
    const page = await openChat('restart')
    await ask(page, 'why?')
    await isBeingWritten(page, answerTo('why?'))
    await server.stop()
    await page.getByRole('alert').waitFor()
    await server.start()
    await shows(page, 'why?', answerTo('why?'))
    await page.getByRole('status').filter({ hasText: 'Ready' }).waitFor()
  })

  it('sends a question again that did not reach the server', async () => {
    const page = await openChat('unsent')
    await server.stop()
    await ask(page, 'why?')
    await page.getByRole('alert').waitFor()
    await shows(page, 'why?')
    await server.start()
    await shows(page, 'why?', answerTo('why?'))
  })

  it('is accessible', async () => {
    const page = await openChat('accessible')
    await ask(page, 'why?')
    await shows(page, 'why?', answerTo('why?'))
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
  })
})
