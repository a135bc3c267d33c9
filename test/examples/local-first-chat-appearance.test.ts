// @module-tag slow

import axe from 'axe-core'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { ChatPage } from './chat-page.ts'

const DESKTOP = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 780 }
const LOOKS = [
  ['desktop-light', DESKTOP, 'light'],
  ['desktop-dark', DESKTOP, 'dark'],
  ['phone-light', PHONE, 'light'],
  ['phone-dark', PHONE, 'dark'],
] as const
const ROOMS = [
  'general',
  'Bücher & Musik',
  'kayak',
  'A room whose name is longer than any list of rooms is wide',
]

/** Author and text of each message, in order. */
const TALK: readonly (readonly [name: string, text: string])[] = [
  ['Grace Hopper', 'Does anybody have the notes of last week?'],
  ['Ben', 'I was not there. '.repeat(90)],
  ['Ben', `They are at https://example.com/${'a-very-long-address/'.repeat(12)}`],
  ['Ada', 'Thank you both!'],
  ['Ada', 'The gauge is at 1.42 m this morning, 8 cm up since yesterday. Can we go on Thursday?'],
  ['Grace Hopper', 'Thursday works. What do we need?'],
  ['Ada', '- boats\n- lunch for six\n    and something for the dog\n- the map'],
  ['Ben', 'I will bring the boats, if somebody has the map.'],
  ['Grace Hopper', 'I have it. The hut has no network, though.'],
  ['Ada', 'That does not matter here. See you on Thursday!'],
]
const LAST = TALK.at(-1)![1]

describeInChromium('the example local-first-chat, looked at', () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    server = await serveExample('local-first-chat')
  })
  afterAll(() => server?.remove())

  async function prepareOffline(chat: ChatPage): Promise<void> {
    onTestFinished(() => server.start())
    await chat.enter('general')
    await server.stop()
    await chat.call('Ada')
    await chat.say('We are at the hut. No network, as you said.', 'The dog has eaten the lunch.')
    await chat.banner.getByText('Next attempt').waitFor()
  }

  async function open(hash = ''): Promise<ChatPage> {
    const page = await browser.page('about:blank')
    await page.setViewportSize(DESKTOP)
    await page.goto(`${server.url}${hash}`)
    return new ChatPage(page)
  }

  const views: readonly [name: string, show: (chat: ChatPage) => Promise<unknown>][] = [
    ['empty', (chat) => chat.rooms.getByText('No rooms yet').waitFor()],
    ['talk', prepareTalk],
    ['trouble', prepareTrouble],
    ['offline', prepareOffline],
  ]

  it.each(views)(
    '%s: is accessible in light and dark colours, on a desktop and a phone',
    async (name, show) => {
      const chat = await open()
      await chat.isReady()
      await show(chat)
      const { page } = chat
      for (const [look, size, colorScheme] of LOOKS) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize(size)
        await chat.screenshot(`${name}-${look}`)
        expect(await violationsIn(chat)).toEqual([])
        const { width, scrollWidth } = await page.evaluate(() => ({
          width: innerWidth,
          scrollWidth: document.documentElement.scrollWidth,
        }))
        expect(scrollWidth).toBe(width)
      }
    },
  )

  it('on a phone shows either the rooms or one room', async () => {
    const chat = await open('#/general')
    await chat.page.setViewportSize(PHONE)
    await chat.log.getByText(LAST).waitFor()
    expect(await chat.rooms.isVisible()).toBe(false)
    await chat.page.getByRole('link', { name: 'All rooms' }).click()
    await chat.rooms.waitFor()
    expect(await chat.log.isVisible()).toBe(false)
    await chat.screenshot('rooms-phone')
    expect(await chat.linkOf('general').evaluate((link) => link === document.activeElement)).toBe(true)
    await chat.page.goBack()
    await chat.log.getByText(LAST).waitFor()
  })

  it('works by keyboard', async () => {
    const chat = await open()
    const { keyboard } = chat.page
    await chat.isReady()
    await keyboard.type('by keyboard')
    await keyboard.press('Enter')
    const messageHasFocus = () => chat.message.evaluate((field) => field === document.activeElement)
    await expect.poll(messageHasFocus).toBe(true)
    await keyboard.type('two')
    await keyboard.press('Shift+Enter')
    await keyboard.type('lines')
    await keyboard.press('Enter')
    await chat.shows('two\nlines')
    expect(await chat.message.inputValue()).toBe('')
    const title = chat.page.getByRole('heading', { level: 2 })
    await keyboard.press('Alt+ArrowDown')
    await expect.poll(() => title.textContent()).toBe('general')
    await expect.poll(messageHasFocus).toBe(true)
    await keyboard.type('a draft')
    await keyboard.press('Alt+ArrowUp')
    await expect.poll(() => title.textContent()).toBe('by keyboard')
    expect(await chat.message.inputValue()).toBe('')
    await keyboard.press('Alt+ArrowDown')
    await expect.poll(() => chat.message.inputValue()).toBe('a draft')
  })

  it('renders long histories in parts, and keeps the scroll position', async () => {
    const chat = await open()
    await chat.isReady()
    await chat.beginOnServer('long history')
    await chat.page.evaluate(sayMany, { room: 'long%20history', count: 250 })
    await chat.log.getByText('message 249', { exact: true }).waitFor()
    await chat.page.reload()
    const count = () => chat.log.locator('.text').count()
    await expect.poll(count).toBe(100)
    expect(await chat.page.locator('.room-count').textContent()).toBe('250 messages')
    const earlier = chat.log.getByRole('button', { name: 'Show earlier messages' })
    const first = chat.log.getByText('message 150', { exact: true })
    await earlier.scrollIntoViewIfNeeded()
    const before = (await first.boundingBox())!.y
    await earlier.click()
    await expect.poll(count).toBe(200)
    expect(Math.abs((await first.boundingBox())!.y - before)).toBeLessThan(60)
    await earlier.click()
    await expect.poll(count).toBe(250)
    expect(await earlier.isVisible()).toBe(false)
    expect(await chat.messages()).toEqual(Array.from({ length: 250 }, (_, i) => `message ${i}`))
    await chat.page.evaluate(sayMany, { room: 'long%20history', count: 1 })
    await chat.page.getByRole('button', { name: /new/i }).click()
    await expect.poll(() => chat.log.getByText('message 0').last().isVisible()).toBe(true)
  })

  it('loads without layout shifts', async () => {
    const chat = await open('#/general')
    await chat.log.getByText(LAST).waitFor()
    await expect.poll(() => chat.page.getByText('Not persisted').isVisible()).toBe(true)
    expect(await chat.page.evaluate(layoutShift)).toBeLessThan(0.01)
  })
})

async function prepareTalk(chat: ChatPage): Promise<void> {
  for (const room of ROOMS) await chat.begin(room)
  await chat.enter('general')
  for (const [name, text] of TALK) {
    await chat.call(name)
    await chat.write(text)
  }
  await chat.call('Ben')
  await chat.enter('kayak')
  await chat.say('I will bring both boats.', 'Who has the map?')
  await chat.call('Ada')
  await chat.enter('general')
  await chat.log.getByText(LAST).waitFor()
}

async function prepareTrouble(chat: ChatPage): Promise<void> {
  await chat.create('x'.repeat(600))
  await chat.page.locator('#new-room-problem').waitFor()
  await chat.page.evaluate(() => {
    location.hash = '#/no-such-room'
  })
  await chat.alert.waitFor()
}

async function violationsIn({ page }: ChatPage): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: typeof import('axe-core') }
    return axe.run()
  })
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target}: ${failureSummary}`),
  )
}

/** Appends by the wire protocol, which is faster than typing. */
async function sayMany({ room, count }: { readonly room: string; readonly count: number }): Promise<void> {
  const records = Array.from({ length: count }, (_, i) => ({
    body: `message ${i}`,
    headers: [['author', 'Ada']],
  }))
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ records })
  await fetch(`/v1/streams/rooms%2F${room}/records`, { method: 'POST', headers, body })
}

/** The layout shift, as a share of the page. */
function layoutShift(): Promise<number> {
  return new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => {
      const shifts = list.getEntries() as (PerformanceEntry & { readonly value: number })[]
      resolve(shifts.reduce((sum, { value }) => sum + value, 0))
    })
    observer.observe({ type: 'layout-shift', buffered: true })
    // Without any shift the observer is never called.
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(0)))
  })
}
