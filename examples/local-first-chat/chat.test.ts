import { open } from 'headwater'
import { createHandler } from 'headwater/http'
import { memory } from 'headwater/memory'
import { virtualClock } from 'headwater/testing'
import { firstValueFrom, take, toArray } from 'rxjs'
import { expect, test } from 'vitest'
import { Chat } from './src/chat.ts'

const BASIN = 'chat'

const YEAR_MS = 366 * 86_400_000
const START = Date.UTC(2025, 0, 1)

test('messages are still there after a year', async () => {
  const storage = memory()
  const before = await Chat.open({ storage, clock: virtualClock({ now: START }) }, BASIN)
  await before.createRoom('general')
  await before.room('general').send('Ada', 'Hello')

  // The tab is opened again, and its background work runs.
  const clock = virtualClock({ now: START + YEAR_MS })
  const after = await Chat.open({ storage, clock }, BASIN)
  await clock.advance('5m')
  await after.room('general').send('Ben', 'Happy new year')
  const entries = await firstValueFrom(after.room('general').entriesFrom(0).pipe(take(2), toArray()))
  expect(entries.map(({ message }) => message?.text)).toEqual(['Hello', 'Happy new year'])
  expect(await firstValueFrom(after.roomNames$)).toEqual(['general'])
})

test('messages that were sent through the service worker are, too', async () => {
  const storage = memory()
  await Chat.open({ storage, clock: virtualClock({ now: START }) }, BASIN)
  const hw = await open({ storage, clock: virtualClock({ now: START }) })
  const serve = createHandler(hw, { auth: 'none', basin: BASIN })
  const call = (method: string, path: string, body?: object) =>
    serve(
      new Request(`http://localhost/v1/streams/${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    )
  expect((await call('PUT', 'rooms%2Fgeneral')).status).toBe(201)
  const sent = await call('POST', 'rooms%2Fgeneral/records', { records: [{ body: 'Hello' }] })
  expect(sent.status).toBe(200)

  const clock = virtualClock({ now: START + YEAR_MS })
  const after = await Chat.open({ storage, clock }, BASIN)
  await clock.advance('5m')
  const entry = await firstValueFrom(after.room('general').entriesFrom(0))
  expect(entry.message?.text).toBe('Hello')
})
