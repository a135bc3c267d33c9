import assert from 'node:assert/strict'
import { App, until } from './app.mjs'
import { launchChromium } from './chat.mjs'

const SHOWN_MS_MAX = 30_000
const ANSWER = 'You asked: why? This answer is written word by word. Reload the page, and it continues. '

/** What the apps of docs/streaming-answers.md have to pass. */
export const ANSWER_CHECKS = {
  'streaming answers': async (app, mode) => {
    const browser = await launchChromium()
    let server = app
    try {
      const asking = await openPage(browser, `${app.url}/`)
      await asking.ask('why?')
      await asking.untilLonger(0)
      const other = await openPage(browser, asking.page.url())
      const length = (await asking.answer()).length
      await asking.page.reload()
      await asking.untilLonger(length)
      for (const viewer of [asking, other]) await viewer.untilEnded()
      assert.equal(await asking.answer(), ANSWER)
      assert.equal(await other.answer(), ANSWER)

      // An answer is stopped after a reload, in all tabs.
      await asking.ask('why?')
      await asking.untilLonger(0)
      await asking.page.reload()
      await asking.untilLonger(0)
      await other.page.goto(asking.page.url())
      await other.untilLonger(0)
      await asking.page.getByRole('button', { name: 'Stop' }).click()
      for (const viewer of [asking, other]) await viewer.untilEnded()
      const stopped = await asking.answer()
      assert.ok(stopped.length < ANSWER.length)
      assert.equal(await other.answer(), stopped)

      // A page reconnects to a server that was killed, and the answer that it wrote has an end.
      await asking.ask('why?')
      await asking.untilLonger(0)
      await app.stop()
      server = await App.start(mode, app.directory, Number(new URL(app.url).port))
      await asking.untilEnded()
      assert.ok((await asking.answer()).length > 0)

      assert.equal((await fetch(`${server.url}/answers/unknown`)).status, 404)
      assert.equal((await fetch(`${server.url}/answers/unknown`, { method: 'DELETE' })).status, 404)
    } finally {
      await browser.close()
      await server.stop()
    }
  },
}

async function openPage(browser, url) {
  const page = await (await browser.newContext()).newPage()
  page.setDefaultTimeout(SHOWN_MS_MAX)
  await page.goto(url)
  /** What is shown, of which nothing is missing or repeated. */
  const answer = async () => {
    const shown = await page.locator('p').evaluate((element) => element.textContent)
    assert.ok(ANSWER.startsWith(shown), `the page shows: ${shown}`)
    return shown
  }
  return {
    page,
    answer,
    untilLonger: (length) =>
      until(`more than ${length} characters`, async () => (await answer()).length > length, SHOWN_MS_MAX),
    untilEnded: () => page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'hidden' }),
    async ask(question) {
      const before = page.url()
      await page.getByLabel('Question').fill(question)
      await page.getByRole('button', { name: 'Ask' }).click()
      await page.waitForURL((next) => next.href !== before)
    },
  }
}
