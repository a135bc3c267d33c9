import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { ChatPage } from './chat-page.ts'

const MIB = 1_048_576

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
  const alertOf = (chat: ChatPage) => expect.poll(() => chat.alert.innerText())

  it('shows the problem with the name of a room', async () => {
    const chat = await open()
    const problem = () => chat.page.locator('#new-room-problem').innerText()
    for (const [name, expected] of [
      ['  ', 'Give the room a name.'],
      ['\u200b\u0301\u202e', 'Give the room a name.'],
      ['é'.repeat(254), 'Stream name must not exceed 512 bytes in length.'],
    ] as const) {
      await chat.create(name)
      await expect.poll(problem).toBe(expected)
      expect(await chat.newRoom.inputValue()).toBe(name)
    }
    expect(await chat.roomNames()).toEqual([])
    await chat.begin('é'.repeat(253))
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
    const stored = await chat.page.evaluate(fillRoom, 'full')
    expect(stored).toBeLessThan(20)
    // More than the message that did not fit, because a little space may be left.
    const text = `no space for this ${randomBytes(780_000).toString('base64url')}`
    await chat.write(text)
    await alertOf(chat).toContain('storage of this page is full')
    expect(await chat.message.inputValue()).toBe(text)
    await chat.page.reload()
    await expect.poll(async () => (await chat.messages()).length).toBe(stored)
    await devTools.send('Storage.overrideQuotaForOrigin', { origin })
    await chat.page.reload()
    await chat.say('space again')
    expect(await chat.messages()).toHaveLength(stored + 1)
  })

  it('reports a missing room', async () => {
    const page = await browser.page(`${server.url}#/missing`)
    await alertOf(new ChatPage(page)).toContain('This room does not exist.')
    expect(new URL(page.url()).hash).toBe('#/')
  })

  it('shows the used space, and asks the browser to keep the data', async () => {
    const chat = await open()
    const storage = chat.page.getByRole('region', { name: 'Storage' })
    await expect
      .poll(() => storage.innerText())
      .toMatch(/^[\d.]+ [kMG]B of [\d.]+ [MGT]B used\s+Not persisted/)
    const devTools = await browser.context.newCDPSession(chat.page)
    await devTools.send('Browser.grantPermissions', {
      origin: new URL(server.url).origin,
      permissions: ['durableStorage'],
    })
    await storage.getByRole('button', { name: 'Keep it' }).click()
    await expect.poll(() => storage.innerText()).toMatch(/Persisted: the browser keeps it\./)
    expect(await storage.getByRole('button').count()).toBe(0)
  })
})

/**
 * Appends to a room by the wire protocol until nothing more can be stored; resolves to how many records were.
 * They are random, because Chromium compresses what it stores.
 */
async function fillRoom(room: string): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  const randomText = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(60_000))))
  for (let stored = 0; ; stored++) {
    const body = JSON.stringify({ records: [{ body: Array.from({ length: 12 }, randomText).join('') }] })
    const { ok } = await fetch(`/v1/streams/rooms%2F${room}/records`, { method: 'POST', headers, body })
    if (!ok) return stored
  }
}
