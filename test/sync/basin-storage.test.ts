// @module-tag slow

import { expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { LocalCopy } from '../../adapters/sync/local-copy.ts'
import { outbox } from '../../adapters/sync/outbox.ts'
import { faultyStorage, type StorageArguments } from '../../adapters/testing/index.ts'
import { outcomeOf } from '../support/index.ts'
import { eventually, kindsIn, openBasinServer, openTab } from './synced-basins.ts'

const isOfOutboxes = (...[, { prefix }]: StorageArguments<'list'>) => prefix.includes('.outbox/')

test.each([
  ['fails', 'that was used long ago', 'a'],
  ['fails', 'that connects at once', 'f'],
  ['is slow', 'that connects at once', 'f'],
])('sends what was left behind if the list of outboxes %s, to a stream %s', async (kind, _, name) => {
  const server = await openBasinServer()
  const { clock } = server
  const storage = memory()
  const before = await openTab(server, storage)
  const first = await before.start()
  for (const used of 'abcdef') {
    first.stream(`rooms/${used}`)
    await clock.advance('1s')
  }
  await eventually(clock, () => first.state.kind === 'live')
  before.network.refuse()
  await first.stream(`rooms/${name}`).append('left')
  await first.close()
  const faulty = faultyStorage(storage)
  const tab = await openTab(server, faulty)
  if (kind === 'fails') faulty.failNext('list', { when: isOfOutboxes })
  else faulty.delay('list', '20s', { when: isOfOutboxes })
  await tab.start()
  const stream = server.basin.stream(`rooms/${name}`)
  await eventually(clock, async () => (await stream.checkTail()).seqNum > 0)
  expect((await stream.read().toArray()).map(({ body }) => body)).toEqual(['left'])
})

test('sends what was left behind to a stream that is gone if the list of outboxes is slow', async () => {
  const server = await openBasinServer()
  const { clock } = server
  const storage = memory()
  const before = await openTab(server, storage)
  before.network.refuse()
  const left = outbox(before.local.stream('.outbox/rooms/gone'), before.remote.stream('rooms/gone'), {
    random: () => 0.5,
    coordinator: coordinateInThread,
  })
  await left.append('left')
  await left.close()
  await new LocalCopy(before.local.stream('rooms/gone')).ensure()
  const faulty = faultyStorage(storage)
  faulty.delay('list', '20s', { when: isOfOutboxes })
  await (await openTab(server, faulty)).start()
  const stream = server.basin.stream('rooms/gone')
  await eventually(clock, async () => (await outcomeOf(stream.checkTail())) === 'ok')
  expect((await stream.read().toArray()).map(({ body }) => body)).toEqual(['left'])
})

test('a tab finds the streams that another one has copied if its list of streams fails', async () => {
  const server = await openBasinServer()
  const { clock } = server
  const storage = memory()
  const leading = await (await openTab(server, storage)).start()
  const faulty = faultyStorage(storage)
  const following = await (await openTab(server, faulty)).start()
  await eventually(clock, () => leading.state.kind === 'live')
  faulty.failNext('list')
  await server.basin.createStream('rooms/new')
  await eventually(clock, () => 'new' in kindsIn(leading))
  await eventually(clock, () => 'new' in kindsIn(following))
})

test('a synced basin is closed when the streams that it copies have ended', async () => {
  const server = await openBasinServer()
  const { clock } = server
  await server.basin.stream('rooms/a').append('1')
  const faulty = faultyStorage(memory())
  const tab = await openTab(server, faulty)
  const rooms = await tab.start()
  await eventually(clock, () => kindsIn(rooms).a === 'live')
  faulty.delay('append', '5s')
  await server.basin.stream('rooms/a').append('2')
  await clock.settle()
  const closed = rooms.close().then(() => clock.now())
  const startedAt = clock.now()
  await clock.advance('1m')
  expect(await closed).toBe(startedAt + 5_000)
})

test('a local stream that is not a copy is stopped, and leaves its connection to others', async () => {
  const server = await openBasinServer()
  const { clock } = server
  const tab = await openTab(server)
  await server.basin.stream('rooms/a').append('a')
  await clock.advance('1s')
  await tab.local.stream('rooms/notes').append('note')
  const rooms = await tab.start({ connectionsMax: 2 })
  await clock.advance('1m')
  expect(rooms.streams).toMatchObject([
    { name: 'rooms/a', state: { kind: 'live' } },
    { name: 'rooms/notes', state: { kind: 'stopped', reason: 'failed', error: { field: 'local' } } },
  ])
})

test.each([
  ['the app retries', false],
  ['another tab takes over', true],
])('a stream that is not a copy, and that the app has opened, is stopped again after %s', async (_, ends) => {
  const server = await openBasinServer()
  const { clock } = server
  const storage = memory()
  const [tab, other] = [await openTab(server, storage), await openTab(server, storage)]
  await tab.local.stream('rooms/notes').append('note')
  const leading = await tab.start({ connectionsMax: 2 })
  await clock.advance('1m')
  const rooms = ends ? await other.start({ connectionsMax: 2 }) : leading
  const { state } = rooms.stream('rooms/notes', { isBackground: true })
  expect(state.kind).not.toBe('live')
  await clock.advance('1m')
  if (ends) await leading.close()
  else rooms.retry()
  await clock.advance('2m')
  expect(kindsIn(rooms)).toEqual({ notes: 'stopped' })
  await server.basin.stream('rooms/b').append('b')
  await eventually(clock, () => kindsIn(rooms).b === 'live')
})
