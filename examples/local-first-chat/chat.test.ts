import { open } from 'headwater'
import { createHandler } from 'headwater/http'
import { memory } from 'headwater/memory'
import { type VirtualClock, virtualClock } from 'headwater/testing'
import { filter, firstValueFrom, map } from 'rxjs'
import { expect, onTestFinished, test } from 'vitest'
import { Chat } from './src/chat.ts'
import { type Entry, entryOf } from './src/message.ts'
import { MessageList } from './src/message-list.ts'
import type { OpenRoom } from './src/room.ts'

const BASIN = 'chat'
const YEAR_MS = 366 * 86_400_000
const START = Date.UTC(2025, 0, 1)

/** A server of the chat, and the network to it. */
async function startServer(clock: VirtualClock, storage = memory()) {
  const hw = await open({ storage, clock })
  await hw.ensureBasin(BASIN, { defaultStreamConfig: { retentionPolicy: 'infinite' } })
  const handle = createHandler(hw, { auth: 'none', basin: BASIN, retention: 'infinite' })
  const network = { isDown: false }
  const fetch = async (request: Request) => {
    if (network.isDown) throw new TypeError('fetch failed')
    return handle(request)
  }
  onTestFinished(() => hw.close())
  return { hw, handle, network, remote: { url: 'http://localhost', fetch, clock } }
}

type Server = Awaited<ReturnType<typeof startServer>>

async function openDevice({ remote }: Server, clock: VirtualClock, storage = memory()): Promise<Chat> {
  const chat = await Chat.open({ local: { storage, clock }, remote, basin: BASIN })
  onTestFinished(() => chat.close())
  return chat
}

const hasRoom = (chat: Chat, name: string) =>
  firstValueFrom(chat.roomNames$.pipe(filter((names) => names.includes(name))))

/** Resolves to the texts of a room once there are as many; pending ones begin with an asterisk. */
function textsOf(room: OpenRoom, count: number): Promise<(string | undefined)[]> {
  const texts$ = room.view$.pipe(
    map((view) =>
      view.toArray().map((record) => `${record.isPending ? '*' : ''}${entryOf(record).message?.text}`),
    ),
    filter((texts) => texts.length === count && texts.every((text) => !text.startsWith('*'))),
  )
  return firstValueFrom(texts$)
}

test('messages are still there after a year, on the device and on the server', async () => {
  const stored = { device: memory(), server: memory() }
  const start = virtualClock({ now: START })
  const before = await openDevice(await startServer(start, stored.server), start, stored.device)
  before.createRoom('general')
  const room = await before.room('general').open()
  await room.send('Ada', 'Hello')
  expect(await textsOf(room, 1)).toEqual(['Hello'])
  await before.close()

  // Both are opened again, and their background work runs.
  const clock = virtualClock({ now: START + YEAR_MS })
  const server = await startServer(clock, stored.server)
  const after = await openDevice(server, clock, stored.device)
  await clock.advance('5m')
  const again = await after.room('general').open()
  await again.send('Ben', 'Happy new year')
  expect(await textsOf(again, 2)).toEqual(['Hello', 'Happy new year'])
  const elsewhere = await openDevice(server, clock)
  expect(await hasRoom(elsewhere, 'general')).toEqual(['general'])
  expect(await textsOf(await elsewhere.room('general').open(), 2)).toEqual(['Hello', 'Happy new year'])
})

test('a room and messages that were written without a network reach the other device', async () => {
  const clock = virtualClock({ now: START })
  const server = await startServer(clock)
  server.network.isDown = true
  const ada = await openDevice(server, clock)
  ada.createRoom('general')
  const room = await ada.room('general').open()
  await room.send('Ada', 'Written offline')
  const view = await firstValueFrom(room.view$.pipe(filter(({ length }) => length === 1)))
  expect(view.at(0)?.isPending).toBe(true)

  server.network.isDown = false
  await clock.advance('1m')
  const ben = await openDevice(server, clock)
  await hasRoom(ben, 'general')
  expect(await textsOf(await ben.room('general').open(), 1)).toEqual(['Written offline'])
  expect(await textsOf(room, 1)).toEqual(['Written offline'])
})

test('rooms and messages of other programs appear, and names that cannot be shown do not', async () => {
  const clock = virtualClock({ now: START })
  const server = await startServer(clock)
  const call = (method: string, path: string, body?: object) =>
    server.handle(
      new Request(`http://localhost/v1/streams/${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    )
  for (const name of ['general', '\u200b\u0301', 'x'.repeat(300)]) {
    expect((await call('PUT', encodeURIComponent(`rooms/${name}`))).status).toBe(201)
  }
  const sent = await call('POST', 'rooms%2Fgeneral/records', { records: [{ body: 'Hello' }] })
  expect(sent.status).toBe(200)
  const chat = await openDevice(server, clock)
  expect(await hasRoom(chat, 'general')).toEqual(['general'])
  expect(await textsOf(await chat.room('general').open(), 1)).toEqual(['Hello'])
  await expect(chat.room('missing').open()).rejects.toMatchObject({ code: 'stream_not_found' })
})

test('messages of a room that is not open arrive too', async () => {
  const clock = virtualClock({ now: START })
  const server = await startServer(clock)
  const [ada, ben] = [await openDevice(server, clock), await openDevice(server, clock)]
  ada.createRoom('general')
  const room = await ada.room('general').open()
  await room.send('Ada', 'Are you there?')
  await textsOf(room, 1)
  await clock.advance('1m')
  await hasRoom(ben, 'general')
  const { message } = await firstValueFrom(ben.room('general').latest$)
  expect(message.text).toBe('Are you there?')
})

test('without a network, all messages on the device can be shown', async () => {
  const clock = virtualClock({ now: START })
  const server = await startServer(clock)
  const stream = server.hw.basin(BASIN).stream('rooms/general')
  for (let first = 0; first < 1_200; first += 400)
    await stream.append(Array.from({ length: 400 }, (_, index) => `${first + index}`))
  const chat = await openDevice(server, clock)
  await hasRoom(chat, 'general')
  const room = await chat.room('general').open()
  await firstValueFrom(room.view$.pipe(filter((view) => view.at(-1 + view.length)?.seqNum === 1_199)))
  server.network.isDown = true
  const entries = await room.entriesBefore(230, 100)
  expect(entries?.map(({ end }) => end)).toEqual(Array.from({ length: 30 }, (_, index) => 201 + index))
})

test('a trim of messages that the page does not show any more keeps the others in place', () => {
  const page = { replaceChildren() {} } as unknown as HTMLElement
  const list = new MessageList(page, { retry() {}, discard() {} })
  // Records without a message need no elements.
  const entries = (from: number, to: number): Entry[] =>
    Array.from({ length: to - from }, (_, index) => {
      const seqNum = from + index
      return { key: String(seqNum), end: seqNum + 1, message: undefined }
    })
  list.apply({ index: 0, removed: 0, inserted: entries(0, 900) })
  list.shorten()
  expect([list.first, list.end]).toEqual([500, 900])
  for (const [trimmed, length] of [
    [100, 900],
    [400, 801],
  ] as const) {
    list.apply({ index: 0, removed: trimmed, inserted: [] })
    list.apply({ index: length - trimmed, removed: 0, inserted: entries(list.end, list.end + 1) })
  }
  expect([list.first, list.end, list.length]).toEqual([500, 902, 402])
})
