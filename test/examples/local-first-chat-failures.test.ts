// @module-tag slow

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { ChatPage } from './chat-page.ts'

const MIB = 1_048_576
/** Characters of a message of which few fit into the storage. */
const BIG_LENGTH = 720_000
const APPENDS = '**/records'

describeInChromium('the example local-first-chat in trouble', () => {
  const browser = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    server = await serveExample('local-first-chat')
  })
  afterAll(() => server?.remove())

  async function open(): Promise<ChatPage> {
    const chat = new ChatPage(await browser.page(server.url))
    await chat.isReady()
    return chat
  }
  /** Until the route is removed. */
  const refuseAppends = () =>
    browser.context.route(APPENDS, (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({
            status: 403,
            json: { code: 'permission_denied', message: 'you may only read here' },
          })
        : route.fallback(),
    )
  const alertOf = (chat: ChatPage) => expect.poll(() => chat.alert.innerText())

  it('shows the problem with the name of a room', async () => {
    const chat = await open()
    const problem = () => chat.page.locator('#new-room-problem').innerText()
    for (const [name, expected] of [
      ['  ', 'Give the room a name.'],
      ['\u200b\u0301\u202e', 'Give the room a name.'],
      ['é'.repeat(101), 'The name must not have more than 100 characters.'],
    ] as const) {
      await chat.create(name)
      await expect.poll(problem).toBe(expected)
      expect(await chat.newRoom.inputValue()).toBe(name)
    }
    expect(await chat.roomNames()).toEqual([])
    await chat.begin('é'.repeat(100))
    expect(await problem()).toBe('')
  })

  it('keeps a message that is too long in its input', async () => {
    const chat = await open()
    await chat.begin('long')
    const text = 'x'.repeat(MIB)
    await chat.write(text)
    await alertOf(chat).toContain('too long. The limit is 1 MiB')
    expect(await chat.message.inputValue()).toHaveLength(MIB)
    await chat.page.getByRole('button', { name: 'Dismiss' }).click()
    expect(await chat.alert.isVisible()).toBe(false)
    await chat.write(text.slice(0, 100_000))
    await chat.log.getByRole('button', { name: 'Show all 100,000 characters' }).click()
    expect((await chat.messages())[0]).toHaveLength(100_000)
  })

  it('reports that the browser denies storage, and retries', async () => {
    const page = await browser.context.newPage()
    await page.addInitScript(() => {
      const { open } = IDBFactory.prototype
      const forbidden = () => {
        throw new DOMException('forbidden', 'SecurityError')
      }
      IDBFactory.prototype.open = forbidden
      Object.assign(globalThis, {
        permit: () => {
          IDBFactory.prototype.open = open
        },
      })
    })
    await page.goto(server.url)
    const chat = new ChatPage(page)
    await alertOf(chat).toContain('does not let the page store data')
    await page.evaluate('permit()')
    await page.getByRole('button', { name: 'Try again' }).click()
    await chat.begin('permitted')
    expect(await chat.alert.isVisible()).toBe(false)
    await page.close()
  })

  it('reports a full storage, loses nothing, and continues once there is space', async () => {
    // A running browser caches the free space for a while.
    await browser.restart()
    const chat = new ChatPage(await browser.page('about:blank'))
    const devTools = await browser.context.newCDPSession(chat.page)
    const origin = new URL(server.url).origin
    await devTools.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 5 * MIB })
    await chat.page.goto(server.url)
    await chat.isReady()
    await chat.begin('full')
    // Otherwise the copies of what is sent would need space too.
    await server.stop()
    const stored = await fill(chat)
    expect(stored).toBeLessThan(20)
    await alertOf(chat).toContain('storage of this page is full')
    const text = await chat.message.inputValue()
    expect(text).toHaveLength(BIG_LENGTH)
    await chat.page.reload()
    await expect.poll(async () => (await chat.messages()).length).toBe(stored)
    await devTools.send('Storage.overrideQuotaForOrigin', { origin })
    await chat.page.reload()
    await expect.poll(async () => (await chat.messages()).length).toBe(stored)
    await chat.say('space again')
    await server.start()
    await chat.page.getByRole('button', { name: 'Try now' }).click()
    await chat.hasSent()
    expect(await chat.messages()).toHaveLength(stored + 1)
  })

  it('shows why the server refused a message, which can be sent again or discarded', async () => {
    const chat = await open()
    await chat.beginOnServer('refusing')
    await refuseAppends()
    await chat.say('to be sent again', 'behind it')
    await chat.log.getByText('Not sent: You may only read here.').waitFor()
    expect(await chat.waiting()).toEqual(['to be sent again', 'behind it'])
    await chat.screenshot('refused')
    await browser.context.unroute(APPENDS)
    await chat.log.getByRole('button', { name: 'Try again' }).click()
    await chat.hasSent()
    await refuseAppends()
    await chat.say('to be discarded')
    await chat.log.getByRole('button', { name: 'Discard' }).click()
    await browser.context.unroute(APPENDS)
    await chat.shows('to be sent again', 'behind it')
    await chat.say('after that')
    await chat.hasSent()
  })

  it('says that the server has another room than this device, and begins again', async () => {
    const chat = await open()
    await chat.beginOnServer('replaced')
    await chat.say('on the first server')
    await chat.hasSent()
    const statuses = await chat.page.evaluate(async () => {
      const room = '/v1/streams/rooms%2Freplaced'
      const deleted = await fetch(room, { method: 'DELETE' })
      const created = await fetch(room, { method: 'PUT' })
      return [deleted.status, created.status]
    })
    expect(statuses).toEqual([202, 201])
    await expect.poll(() => chat.banner.innerText()).toContain('another room of this name')
    await chat.screenshot('replaced')
    await chat.shows('on the first server')
    await chat.banner.getByRole('button', { name: 'Begin again' }).click()
    await chat.shows()
    await expect.poll(() => chat.banner.isVisible()).toBe(false)
    await chat.say('on the second server')
    await chat.hasSent()
    await chat.shows('on the second server')
  })

  it('reports a missing room', async () => {
    const page = await browser.page(`${server.url}#/missing`)
    await alertOf(new ChatPage(page)).toContain('This room does not exist.')
    expect(new URL(page.url()).hash).toBe('#/')
  })

  it('shows the used space, and asks the browser to keep the data', async () => {
    const page = await browser.context.newPage()
    await page.addInitScript(() => {
      // Chromium says that data is persisted as soon as the permission is granted.
      let isPersisted = false
      const { persist } = StorageManager.prototype
      StorageManager.prototype.persisted = async () => isPersisted
      StorageManager.prototype.persist = async function () {
        isPersisted = await persist.call(this)
        return isPersisted
      }
    })
    const devTools = await browser.context.newCDPSession(page)
    await devTools.send('Browser.grantPermissions', {
      origin: new URL(server.url).origin,
      permissions: ['durableStorage'],
    })
    await page.goto(server.url)
    const storage = page.getByRole('region', { name: 'Storage' })
    await expect
      .poll(() => storage.innerText())
      .toMatch(/^[\d.]+ [kMG]B of [\d.]+ [MGT]B used\s+Not persisted/)
    await storage.getByRole('button', { name: 'Keep it' }).click()
    await expect.poll(() => storage.innerText()).toMatch(/Persisted: the browser keeps it\./)
    expect(await storage.getByRole('button').count()).toBe(0)
    await page.close()
  })
})

/** Sends messages until one cannot be stored, which returns to the input; resolves to how many were. */
async function fill(chat: ChatPage): Promise<number> {
  for (let stored = 0; ; stored++) {
    // Random, because Chromium compresses what it stores.
    await chat.write(randomBytes((BIG_LENGTH * 3) / 4).toString('base64url'))
    const isStored = async () => (await chat.messages()).length > stored
    await expect.poll(async () => (await isStored()) || chat.alert.isVisible()).toBe(true)
    if (!(await isStored())) return stored
  }
}
