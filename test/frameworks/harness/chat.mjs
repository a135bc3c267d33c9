import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { App, until } from './app.mjs'

/** What the stand-in for a model answers: `gated-model.js`. */
export const ANSWER =
  'This answer is written token by token, and each token is a record of a stream. ' +
  'Reload the page while it is being written: the page continues where it was, without a gap or a repeat. ' +
  'Open it in a second tab: both show the same answer. ' +
  'Stop the server and start it again: what was written is still there, and the rest follows.'
const SHOWN_MS_MAX = 120_000
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** What the app of docs/ai-chat.md has to pass. */
export const CHAT_CHECKS = {
  'resumable chat': async (app, mode) => {
    const browser = await launchChromium()
    let server = app
    /** Lets the model write until the answer has more than so many characters. It waits until then. */
    const allow = (length) => writeFile(join(app.directory, 'allowed-length'), String(length))
    try {
      // The development server takes its own host only.
      const { port } = new URL(app.url)
      const asking = await openChat(browser, `http://localhost:${port}/`)
      const url = asking.page.url()
      const before = await openChat(browser, url)
      await asking.ask('why?')
      await allow(0)
      await asking.untilMoreThan(0)
      const shown = await asking.answer()
      await asking.page.reload()
      await allow(shown.length)
      await asking.untilMoreThan(shown.length)
      await before.untilMoreThan(0)
      const later = await openChat(browser, url)
      await later.untilMoreThan(0)

      const viewers = [asking, before, later]
      const reloads = mode.reloads ? viewers.map(({ page }) => page.waitForEvent('load')) : []
      await app.stop()
      server = await App.start(mode, app.directory, Number(port))

      await Promise.all(reloads)
      await allow(ANSWER.length)
      for (const viewer of viewers) await viewer.untilMoreThan(ANSWER.length - 1)
      const name = url.split('/').at(-1)
      const read = async (path) => (await server.client.request(`/v1/stream/${path}`)).json()
      // The answer becomes a message shortly after its last token.
      await until('the message', async () => (await read(`chats/${name}`)).length > 1, SHOWN_MS_MAX)
      const [question, answer, ...others] = await read(`chats/${name}`)
      assert.deepEqual(others, [])
      assert.deepEqual(answer.parts, [{ type: 'text', text: ANSWER }])
      const chunks = await read(`answers/${name}/${question.id}`)
      assert.deepEqual(typesOf(chunks), [
        'start',
        'start-step',
        'text-start',
        'text-end',
        'finish-step',
        'finish',
      ])
      assert.equal(chunks.map(({ delta }) => delta ?? '').join(''), ANSWER)

      // Nothing is asked twice, and the chat goes on.
      await asking.ask('really?')
      await until('the second answer', async () => (await before.messages()).length === 4, SHOWN_MS_MAX)
      assert.deepEqual((await before.messages()).slice(0, 3), ['why?', ANSWER, 'really?'])

      // An answer is stopped by a page that was reloaded, for all.
      for (const viewer of [asking, before]) await viewer.untilReady()
      await allow(0)
      await asking.ask('stop?')
      const stopped = (shown) => shown.length === 6 && shown[5] !== '' && ANSWER.startsWith(shown[5])
      await until('the third answer', async () => stopped(await asking.messages()), SHOWN_MS_MAX)
      await asking.page.reload()
      await until('the third answer', async () => stopped(await asking.messages()), SHOWN_MS_MAX)
      await asking.page.getByRole('button', { name: 'Stop' }).click()
      for (const viewer of [asking, before]) await viewer.untilReady()
      await until('the message', async () => (await read(`chats/${name}`)).length === 6, SHOWN_MS_MAX)
      const [{ text }] = (await read(`chats/${name}`))[5].parts
      for (const viewer of [asking, before]) assert.equal((await viewer.messages())[5], text)
      assert.ok(text.length > 0 && text.length < ANSWER.length)
    } catch (error) {
      const output = server === app ? app.output : `${app.output}\nRestarted:\n${server.output}`
      throw Object.assign(error, { output })
    } finally {
      await browser.close()
      await server.stop()
    }
  },
}

/** The types of the chunks around the tokens. */
function typesOf(chunks) {
  return chunks.map(({ type }) => type).filter((type) => type !== 'text-delta')
}

/** Returns that a page shows nothing yet if it began to load during a call. */
function unlessLoading(error) {
  if (/Execution context was destroyed/.test(error.message)) return []
  throw error
}

/** Opens a page of a profile of its own. */
async function openChat(browser, url) {
  const page = await (await browser.newContext()).newPage()
  page.setDefaultTimeout(SHOWN_MS_MAX)
  await page.goto(url)
  // A development server that was restarted makes its pages load again.
  const messages = () => page.locator('ol li').allTextContents().catch(unlessLoading)
  /** What is shown of the first answer, of which nothing is missing in between. */
  const answer = async () => {
    const [, shown = ''] = await messages()
    assert.ok(ANSWER.startsWith(shown), `the page shows: ${shown}`)
    return shown
  }
  return {
    page,
    messages,
    answer,
    untilMoreThan: (length) =>
      until(`more than ${length} characters`, async () => (await answer()).length > length, SHOWN_MS_MAX),
    untilReady: () => page.getByRole('status').filter({ hasText: 'Ready' }).waitFor(),
    async ask(question) {
      await this.untilReady()
      await page.getByLabel('Question').fill(question)
      await page.getByRole('button', { name: 'Ask' }).click()
    },
  }
}

/** Starts Chromium, or the browser in the environment variable `CHROMIUM_PATH`. */
export async function launchChromium() {
  const { CHROMIUM_PATH } = process.env
  const executablePath = (CHROMIUM_PATH ? [CHROMIUM_PATH] : PLACES).find((path) => existsSync(path))
  assert.ok(executablePath, 'Chromium was not found; set CHROMIUM_PATH')
  return await chromium.launch({ executablePath, args: ['--no-sandbox'], headless: true })
}
