// @module-tag slow

import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AppServer, serveExample } from '../browser/app-server.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { ChatPage } from './chat-page.ts'

describeInChromium('the example local-first-chat', () => {
  const browser = restartableBrowser()
  const other = restartableBrowser()
  let server: AppServer
  beforeAll(async () => {
    server = await serveExample('local-first-chat')
  })
  afterAll(() => server?.remove())

  async function openTab(name: string, profile = browser): Promise<ChatPage> {
    const chat = new ChatPage(await profile.page(server.url))
    await chat.isReady()
    await chat.call(name)
    return chat
  }

  it('begins empty', async () => {
    const chat = await openTab('Ada')
    expect(await chat.rooms.textContent()).toContain('No rooms yet')
    await chat.begin('empty room')
    await expect.poll(() => chat.log.textContent()).toContain('Write the first message')
  })

  it('updates two tabs live, each with its own name', async () => {
    const [ada, ben] = [await openTab('Ada'), await openTab('Ben')]
    await ada.begin('general')
    await expect.poll(() => ben.roomNames()).toEqual(['empty room', 'general'])
    await ben.enter('general')
    await ada.say('Hello, Ben')
    await ben.shows('Hello, Ben')
    await ben.say('Hello, Ada', 'How are you?')
    await ada.shows('Hello, Ben', 'Hello, Ada', 'How are you?')
    const ownMessages = (chat: ChatPage) => chat.log.locator('.own .text').allTextContents()
    expect(await ownMessages(ada)).toEqual(['Hello, Ben'])
    expect(await ownMessages(ben)).toEqual(['Hello, Ada', 'How are you?'])
    // Consecutive messages of one author show the name once.
    expect(await ada.log.locator('.byline:visible [data-part="author"]').allTextContents()).toEqual([
      'Ada',
      'Ben',
    ])
    await ada.page.reload()
    await ada.shows('Hello, Ben', 'Hello, Ada', 'How are you?')
    expect(await ownMessages(ada)).toEqual(['Hello, Ben'])
  })

  it('brings rooms and messages of two profiles together, although one is offline meanwhile', async () => {
    const [ada, ben] = [await openTab('Ada'), await openTab('Ben', other)]
    await ada.begin('two profiles')
    await expect.poll(() => ben.roomNames()).toContain('two profiles')
    await ben.enter('two profiles')
    await ada.say('Can you hear me?')
    await ben.shows('Can you hear me?')
    await other.context.setOffline(true)
    // Connections that are open would stay open.
    await ben.page.reload()
    await expect.poll(() => ben.page.getByRole('status').textContent()).toBe('Offline')
    await ben.say('Loud and clear')
    await ada.say('Are you still there?')
    await ada.hasSent()
    expect(await ben.messages()).toEqual(['Can you hear me?', 'Loud and clear'])
    await ben.begin('of Ben')
    await ben.say('A room of my own')
    await other.context.setOffline(false)
    await ada.shows('Can you hear me?', 'Are you still there?', 'Loud and clear')
    await expect.poll(() => ada.roomNames()).toContain('of Ben')
    await ada.enter('of Ben')
    await ada.shows('A room of my own')
    await ben.hasSent()
    await ben.enter('two profiles')
    await ben.shows('Can you hear me?', 'Are you still there?', 'Loud and clear')
    await ben.hasSent()
  })

  it('counts unread messages, for all tabs of a name', async () => {
    const [ada, ben] = [await openTab('Ada'), await openTab('Ben')]
    await ada.enter('general')
    await ada.begin('elsewhere')
    await ben.enter('general')
    await ben.say('Are you there?', 'Ada?')
    await expect.poll(() => ada.linkOf('general').textContent()).toMatch(/Ben: Ada\?\s+2\s*$/)
    await expect.poll(() => ada.page.title()).toBe('(2) elsewhere · Brook')
    const third = await openTab('Ada')
    await expect.poll(() => third.page.title()).toBe('(2) Brook')
    await third.enter('general')
    await expect.poll(() => third.page.title()).toBe('general · Brook')
    await expect.poll(() => ada.page.title()).toBe('elsewhere · Brook')
    expect(await third.log.locator('.of-new').textContent()).toBe('New')
  })

  it('creates one room when two tabs create it at the same time', async () => {
    const [ada, ben] = [await openTab('Ada'), await openTab('Ben')]
    await Promise.all([ada.begin('race'), ben.begin('race')])
    await Promise.all([ada.say('from Ada'), ben.say('from Ben')])
    const count = async (chat: ChatPage) => (await chat.roomNames()).filter((name) => name === 'race').length
    for (const chat of [ada, ben]) {
      expect(await count(chat)).toBe(1)
      await expect.poll(async () => (await chat.messages()).sort()).toEqual(['from Ada', 'from Ben'])
    }
  })

  it('shows messages as text, never as markup', async () => {
    const markup = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    const chat = await openTab(markup.slice(0, 40))
    await chat.begin(markup)
    await chat.say(markup)
    await chat.shows(markup)
    await chat.page.reload()
    await chat.shows(markup)
    expect(await chat.roomNames()).toContain(markup)
    expect(await chat.page.locator('img:not([src="icon.svg"])').count()).toBe(0)
    await expect.poll(() => chat.page.title()).toContain(markup)
  })

  it('keeps messages in place, whatever their writing direction and height', async () => {
    const chat = await openTab('Ada')
    await chat.beginOnServer('odd')
    const author = '\u202eeve'
    await append(chat, 'odd', { body: `a${'\u0301'.repeat(300)}`, headers: [['author', author]] })
    await append(chat, 'odd', { body: 'nobody said this', headers: [['author', ' \t ']] })
    await chat.log.getByText('nobody said this').waitFor()
    expect(await chat.log.locator('[data-part="author"]').allTextContents()).toEqual([author, 'Somebody'])
    const styles = await chat.log.locator('.text, [data-part="author"]').evaluateAll((elements) =>
      elements.map((element) => {
        const { overflowY, unicodeBidi } = getComputedStyle(element.closest('.text, .byline')!)
        return [overflowY, getComputedStyle(element).unicodeBidi !== 'normal' || unicodeBidi !== 'normal']
      }),
    )
    expect(new Set(styles.map(String))).toEqual(new Set(['clip,true']))
  })

  it('shows what another program sends to the server by the wire protocol', async () => {
    const chat = await openTab('Ada')
    await chat.beginOnServer('wire')
    const status = await chat.page.evaluate(async () => {
      const records = '/v1/streams/rooms%2Fwire/records'
      const body = JSON.stringify({ records: [{ body: 'by fetch', headers: [['author', 'A script']] }] })
      const headers = { 'content-type': 'application/json' }
      return (await fetch(records, { method: 'POST', headers, body })).status
    })
    expect(status).toBe(200)
    await chat.shows('by fetch')
  })

  it('shows no command records of a room that is trimmed and fenced', async () => {
    const chat = await openTab('Ada')
    await chat.begin('quiet')
    await chat.say('first', 'second')
    await chat.hasSent()
    await append(chat, 'quiet', { headers: [['', 'fence']], body: 'token' })
    await chat.say('third')
    await chat.hasSent()
    await append(chat, 'quiet', { headers: [['', btoa('trim')]], body: 'AAAAAAAAAAE=' }, 'base64')
    // A trim takes effect while the room is open.
    await chat.shows('second', 'third')
    await chat.page.reload()
    await chat.shows('second', 'third')
    expect(await chat.linkOf('quiet').locator('.room-preview').textContent()).toBe('Ada: third')
    expect(await chat.log.getAttribute('aria-busy')).toBe('false')
    await append(chat, 'quiet', { headers: [['', btoa('trim')]], body: 'AAAAAAAAAAU=' }, 'base64')
    await chat.page.reload()
    await chat.page.getByText('Nothing here yet').waitFor()
    await chat.say('fourth')
    await chat.shows('fourth')
  })

  it('shows messages with timestamps beyond the range of dates', async () => {
    const chat = await openTab('Ada')
    await chat.beginOnServer('far')
    const config = { timestamping: { mode: 'client-require', uncapped: true } }
    const changed = await chat.page.evaluate(async (config) => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(config)
      return (await fetch('/v1/streams/rooms%2Ffar', { method: 'PATCH', headers, body })).status
    }, config)
    expect(changed).toBe(200)
    await append(chat, 'far', { body: 'at the end', timestamp: Number.MAX_SAFE_INTEGER })
    await chat.shows('at the end')
  })

  it('works offline and without its server in two tabs, after a reload too', async () => {
    const [ada, ben] = [await openTab('Ada'), await openTab('Ben')]
    await ada.begin('offline')
    await expect.poll(() => ben.roomNames()).toContain('offline')
    await ben.enter('offline')
    await ada.say('still online')
    await ada.hasSent()
    await server.stop()
    await browser.context.setOffline(true)
    await expect.poll(() => ada.page.getByRole('status').textContent()).toBe('Offline')
    await ada.say('now offline')
    await ben.shows('still online', 'now offline')
    for (const chat of [ada, ben]) expect(await chat.waiting()).toEqual(['now offline'])
    await expect.poll(() => ben.banner.textContent()).toContain('Next attempt in')
    await ada.page.reload()
    await ada.shows('still online', 'now offline')
    await ada.say('reloaded')
    await ben.shows('still online', 'now offline', 'reloaded')
    await ada.begin('without a network')
    await expect.poll(() => ben.roomNames()).toContain('without a network')
    await ada.say('in a new room')
  })

  it('keeps everything when the browser is restarted offline, and sends it when there is a network', async () => {
    const rooms = await (await openTab('Ada')).roomNames()
    await browser.restart()
    await browser.context.setOffline(true)
    const chat = await openTab('Ada')
    await expect.poll(() => chat.roomNames()).toEqual(rooms)
    await chat.enter('offline')
    await chat.shows('still online', 'now offline', 'reloaded')
    await chat.say('restarted')
    expect(await chat.waiting()).toEqual(['now offline', 'reloaded', 'restarted'])
    await server.start()
    await browser.context.setOffline(false)
    await chat.hasSent()
    await chat.shows('still online', 'now offline', 'reloaded', 'restarted')
    expect(await chat.banner.isVisible()).toBe(false)
    const bodies = (room: string) => chat.page.evaluate(readRoom, room)
    expect(await bodies('offline')).toEqual(['still online', 'now offline', 'reloaded', 'restarted'])
    await expect.poll(() => bodies('without a network')).toEqual(['in a new room'])
  })
})

/** As a script of its page does, by the wire protocol. */
async function append(chat: ChatPage, room: string, record: object, format = 'raw'): Promise<void> {
  const status = await chat.page.evaluate(
    async ({ room, record, format }) => {
      const headers = { 'content-type': 'application/json', 'svc-format': format }
      const body = JSON.stringify({ records: [record] })
      const records = `/v1/streams/${encodeURIComponent(`rooms/${room}`)}/records`
      return (await fetch(records, { method: 'POST', headers, body })).status
    },
    { room, record, format },
  )
  expect(status).toBe(200)
}

/** Reads a room from the server. */
async function readRoom(room: string): Promise<string[]> {
  const response = await fetch(`/v1/streams/${encodeURIComponent(`rooms/${room}`)}/records?seq_num=0`)
  const { records = [] } = await response.json()
  return records.map(({ body }: { readonly body: string }) => body)
}
