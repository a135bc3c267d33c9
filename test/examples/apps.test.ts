// Installs each example from the registry, builds it, and uses it: `npm run check:examples`.
// @module-tag nightly

import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { pack } from '../../scripts/project.mjs'
import { describeInChromium, suiteBrowser } from '../browser/chromium.ts'
import { install, preview, run } from './project.ts'

// The registry may be slow.
vi.setConfig({ testTimeout: 600_000 })

const MARKUP = '<img src=x onerror="document.title=1">'
const NODE_PROJECTS = ['level-storage', 'offline-tests']

let directory: string
let tarball: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'headwater-examples-'))
  tarball = await pack(directory)
})
afterAll(() => rm(directory, { recursive: true }))

/** Installs, builds and serves an example. */
async function serve(name: string) {
  const folder = await install(name, tarball)
  const { name: packageName } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  expect(packageName).toBe('my-app')
  await run(folder, 'npm', 'run', 'build')
  return { folder, ...(await preview(folder)) }
}

/** Checks accessibility on a desktop and in dark colours on a phone, and that nothing is too wide. */
async function looksGood(page: Page) {
  for (const [width, colorScheme] of [
    [1280, 'light'],
    [390, 'dark'],
  ] as const) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 780 })
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
  }
}

const status = (page: Page) => page.getByRole('status').textContent()
const isControlled = (page: Page) => page.evaluate(() => navigator.serviceWorker.controller !== null)

describe('the example', () => {
  it.each(NODE_PROJECTS)('%s has types that check and tests that pass', async (name) => {
    const folder = await install(name, tarball)
    await run(folder, 'npm', 'run', 'typecheck')
    expect(await run(folder, 'npm', 'test')).toMatch(/Tests .*\d+ passed/)
  })
})

describeInChromium('the example', () => {
  // The published client of Durable Streams leaves a promise of each stream that breaks off unhandled.
  const expected = /network error|Failed to fetch/
  const [one, other] = [suiteBrowser({ expected }), suiteBrowser({ expected })]

  it('local-first-chat brings two people together, also while the server is down', async () => {
    const server = await serve('local-first-chat')
    const [ada, ben] = [await one.page(server.url), await other.page(server.url)]
    const say = async (page: Page, text: string) => {
      await page.getByLabel('Message', { exact: true }).fill(text)
      await page.keyboard.press('Enter')
    }
    const shows = (page: Page, ...texts: string[]) =>
      expect
        .poll(() => page.getByRole('list', { name: 'Messages' }).locator('p').allTextContents())
        .toEqual(texts)
    await ada.getByLabel('Your name').fill('Ada')
    await ada.getByLabel('New room').fill('general')
    await ada.keyboard.press('Enter')
    await ben.getByRole('link', { name: 'general' }).click()
    await say(ada, MARKUP)
    for (const page of [ada, ben]) await shows(page, MARKUP)
    await expect.poll(() => isControlled(ada)).toBe(true)
    await server.stop()
    await say(ada, 'without a server')
    // It is shown once it is stored, which a reload may interrupt.
    await shows(ada, MARKUP, 'without a server')
    await expect.poll(() => status(ada)).toContain('Offline')
    await ada.reload()
    await shows(ada, MARKUP, 'without a server')
    await looksGood(ada)
    await server.start()
    for (const page of [ada, ben]) await shows(page, MARKUP, 'without a server')
    await expect.poll(() => ada.getByText('waits').count()).toBe(0)
  })

  it('shared-todo works while its server is down, and converges', async () => {
    const server = await serve('shared-todo')
    const [mine, theirs] = [await one.page(server.url), await other.page(server.url)]
    const add = async (page: Page, title: string) => {
      await page.getByLabel('New task').fill(title)
      await page.keyboard.press('Enter')
    }
    const shows = (page: Page, ...titles: string[]) =>
      expect
        .poll(() => page.getByRole('list', { name: 'Tasks' }).locator('span').allTextContents())
        .toEqual(titles)
    await add(mine, 'Milk')
    await add(mine, 'Bread')
    await shows(theirs, 'Milk', 'Bread')
    await expect.poll(() => isControlled(mine)).toBe(true)
    await server.stop()
    await mine.getByLabel('Done: Bread').click()
    await add(mine, 'Tea')
    await theirs.getByLabel('Remove: Bread').click()
    await expect.poll(() => status(mine)).toBe('Offline · 2 changes wait')
    await mine.reload()
    await shows(mine, 'Milk', 'Bread', 'Tea')
    await looksGood(mine)
    await server.start()
    for (const page of [mine, theirs]) {
      await shows(page, 'Milk', 'Tea')
      await expect.poll(() => status(page)).toBe('Up to date')
    }
  })

  it('published-client follows in two tabs, also without a server and in a browser that was restarted', async () => {
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
    await server.stop()
    await append(second, 'offline')
    await shows(first, 'first', 'offline')
    await one.restart()
    const again = await open()
    await shows(again, 'first', 'offline')
    await looksGood(again)
  })

  it('live-logs follows the output of a program, also after a restart of the server', async () => {
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
    await server.stop()
    await server.start()
    // Lines that arrive later are searched too.
    await append('INFO one more needle', 'DEBUG a hidden needle')
    await expect.poll(visible).toEqual(['the <b>first</b> needle', 'one more needle'])
    await looksGood(page)
  })

  it('work-queue does every job once, although a worker is killed and the clock of another is wrong', async () => {
    const server = await serve('work-queue')
    const events = async () => {
      const url = `${server.url}v1/streams/events/records?seq_num=0`
      const response = await fetch(url, { headers: { 'svc-basin': 'work-queue' } })
      const { records } = (await response.json()) as { records: { body: string }[] }
      return records.map(({ body }) => JSON.parse(body))
    }
    const ahead = 'data:text/javascript,const now = Date.now; Date.now = () => now() + 60_000'
    const args = ['--import', ahead, '--import', 'tsx', 'worker.ts', server.url, 'worker-3']
    const third = spawn(process.execPath, args, { cwd: server.folder, stdio: 'ignore' })
    onTestFinished(() => void third.kill())
    const page = await one.page(server.url)
    const done = (text: string) => expect.poll(() => status(page)).toContain(text)
    await expect.poll(async () => (await events()).filter(({ type }) => type === 'started').length).toBe(3)
    await page.getByRole('button', { name: 'Add 12 jobs' }).click()
    // A lease of 4 seconds is long enough for each job.
    await done('12 of 12 jobs done, each once; 0 taken over')
    third.kill()
    await page.getByRole('button', { name: 'Add 12 jobs' }).click()
    await page.locator('[data-worker=worker-2][data-state=claimed]').waitFor()
    await page.getByRole('button', { name: 'Kill worker-2' }).click()
    await page.getByRole('button', { name: 'Start worker-2' }).waitFor()
    await done('24 of 24 jobs done, each once')
    const results = (await events()).filter(({ type }) => type === 'done')
    expect(new Set(results.map(({ id }) => id)).size).toBe(24)
    await looksGood(page)
    await server.stop()
    await done('Offline')
  })

  it('resumable-chat continues an answer for all viewers, until one of them stops it', async () => {
    const server = await serve('resumable-chat')
    const openChat = async (browser: typeof one) => {
      const page = await browser.page(`${server.url}#a-chat`)
      await page.getByLabel('Question').waitFor()
      return page
    }
    const [asking, watching] = [await openChat(one), await openChat(other)]
    const messages = (page: Page) => page.locator('main > ol > li').allInnerTexts()
    const ask = async (question: string) => {
      const { length } = await messages(asking)
      await asking.getByLabel('Question').fill(question)
      await asking.getByRole('button', { name: 'Ask' }).click()
      for (const page of [asking, watching]) {
        await expect.poll(async () => (await messages(page)).at(length + 1)?.length).toBeGreaterThan(20)
      }
    }
    await ask('why?')
    await server.stop()
    for (const page of [asking, watching]) await expect.poll(() => status(page)).toBe('Offline')
    await server.start()
    await asking.reload()
    for (const page of [asking, watching]) {
      await expect
        .poll(async () => (await messages(page))[1])
        .toMatch(/^You asked: “why\?”.* which is unchanged\.$/s)
      await page.locator('main li li strong', { hasText: 'Stop' }).waitFor()
      await expect.poll(() => status(page)).toBe('Ready')
    }
    await ask('and now?')
    await asking.reload()
    await asking.getByRole('button', { name: 'Stop' }).click()
    for (const page of [asking, watching]) await expect.poll(() => status(page)).toBe('Ready')
    const stopped = await messages(asking)
    expect(stopped[3]).not.toContain('unchanged')
    expect(await messages(watching)).toEqual(stopped)
    await asking.reload()
    await expect.poll(() => messages(asking)).toEqual(stopped)
    await asking.getByRole('link', { name: 'New chat' }).click()
    await expect.poll(() => messages(asking)).toEqual([])
    await asking.getByRole('link', { name: 'why?' }).click()
    await expect.poll(() => messages(asking)).toEqual(stopped)
    await looksGood(asking)
  })

  it('resumable-chat answers two people who ask at the same time, one after the other', async () => {
    const server = await serve('resumable-chat')
    const pages = [await one.page(`${server.url}#a-chat`), await other.page(`${server.url}#a-chat`)]
    for (const [i, page] of pages.entries()) await page.getByLabel('Question').fill(`question ${i}`)
    await Promise.all(pages.map((page) => page.getByRole('button', { name: 'Ask' }).click()))
    const messages = (page: Page) => page.locator('main > ol > li').allInnerTexts()
    for (const page of pages) {
      await expect.poll(async () => (await messages(page)).length).toBe(4)
      const questions = async () => (await messages(page)).filter((_, i) => i % 2 === 0).sort()
      await expect.poll(questions).toEqual(['question 0', 'question 1'])
      await expect.poll(() => status(page)).toBe('Ready')
      const [first, firstAnswer, second, secondAnswer] = await messages(page)
      expect(firstAnswer).toMatch(new RegExp(`^You asked: “${first}”.* which is unchanged\\.$`, 's'))
      expect(secondAnswer).toMatch(new RegExp(`^You asked: “${second}”.* which is unchanged\\.$`, 's'))
    }
  })

  it('live-query keeps a query up to date in two browsers, also after a restart of the server', async () => {
    const server = await serve('live-query')
    const [mine, theirs] = [await one.page(server.url), await other.page(server.url)]
    const shows = (page: Page, ...names: string[]) =>
      expect.poll(() => page.locator('li').allTextContents()).toEqual(names)
    const add = async (name: string) => {
      await mine.getByLabel('Item', { exact: true }).fill(name)
      await mine.getByRole('button', { name: 'Add' }).click()
    }
    await add('Pears')
    await add('Apples')
    for (const page of [mine, theirs]) await shows(page, 'Apples', 'Pears')
    await theirs.getByLabel('Pears').click()
    for (const page of [mine, theirs]) await shows(page, 'Apples')
    await expect.poll(() => status(mine)).toBe('1 of 2 bought')
    await server.stop()
    await server.start()
    await add('Tea')
    for (const page of [mine, theirs]) await shows(page, 'Apples', 'Tea')
    await looksGood(mine)
  })

  it('shared-document merges what two browsers type in one document, also offline', async () => {
    const server = await serve('shared-document')
    const [mine, theirs] = [await one.page(server.url), await other.page(server.url)]
    const textOf = (page: Page) => page.getByLabel('Text')
    const show = async (text: string) => {
      for (const page of [mine, theirs]) await expect.poll(() => textOf(page).inputValue()).toBe(text)
    }
    for (const page of [mine, theirs]) await page.getByText('Up to date').waitFor()
    await textOf(mine).pressSequentially('Hello, world', { delay: 30 })
    await show('Hello, world')
    await server.stop()
    for (const page of [mine, theirs]) await page.getByText('Offline').waitFor()
    await textOf(theirs).press('Control+Home')
    await textOf(theirs).pressSequentially('Title: ', { delay: 30 })
    await textOf(mine).press('Control+End')
    await textOf(mine).pressSequentially('!', { delay: 30 })
    await looksGood(mine)
    await server.start()
    await show('Title: Hello, world!')
    await mine.reload()
    await show('Title: Hello, world!')
  })

  it('is checked here, whichever it is', async () => {
    const entries = await readdir(join(import.meta.dirname, '../../examples'), { withFileTypes: true })
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
    const source = await readFile(import.meta.filename, 'utf8')
    expect(names.filter((name) => !source.includes(`'${name}'`))).toEqual([])
  })
})
