// @module-tag slow

import { expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { LocalCopy } from '../../adapters/sync/local-copy.ts'
import { outbox } from '../../adapters/sync/outbox.ts'
import { faultyStorage, type StorageArguments } from '../../adapters/testing/index.ts'
import type { Storage } from '../../src/index.ts'
import { outcomeOf } from '../support/index.ts'
import { type BasinServer, eventually, kindsIn, openBasinServer, openTab } from './synced-basins.ts'

const isOfOutboxes = (...[, { prefix }]: StorageArguments<'list'>) => prefix.includes('.outbox/')

/** Starts a synced basin whose list of outboxes takes 20 seconds. */
async function startSlowly(server: BasinServer, storage: Storage) {
  const faulty = faultyStorage(storage)
  faulty.delay('list', '20s', { when: isOfOutboxes })
  const starting = (await openTab(server, faulty)).start()
  await server.clock.advance('20s')
  return starting
}

test.each([
  ['that was used long ago', 'a'],
  ['that was used last', 'f'],
])('sends what was left behind if the list of outboxes is slow, to a stream %s', async (_, name) => {
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
  await startSlowly(server, storage)
  const stream = server.basin.stream(`rooms/${name}`)
  await eventually(clock, async () => (await stream.checkTail()).seqNum > 0)
  expect((await stream.read().toArray()).map(({ body }) => body)).toEqual(['left'])
})

test('cannot be opened if the list of outboxes fails', async () => {
  const faulty = faultyStorage(memory())
  const tab = await openTab(await openBasinServer(), faulty)
  faulty.failNext('list', { when: isOfOutboxes })
  await expect(tab.start()).rejects.toMatchObject({ code: 'storage' })
  await tab.start()
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
  await startSlowly(server, storage)
  const stream = server.basin.stream('rooms/gone')
  await eventually(clock, async () => (await outcomeOf(stream.checkTail())) === 'ok')
  expect((await stream.read().toArray()).map(({ body }) => body)).toEqual(['left'])
})

test('a synced basin is closed when the streams that it copies have ended', async () => {
  const server = await openBasinServer()
  const { clock } = server
  await server.basin.stream('rooms/a').append('1')
  const faulty = faultyStorage(memory())
  const tab = await openTab(server, faulty)
  const rooms = await tab.start()
  rooms.stream('rooms/a')
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
  await tab.local.stream('rooms/notes').append('note')
  const rooms = await tab.start({ connectionsMax: 1 })
  rooms.stream('rooms/a')
  rooms.stream('rooms/notes')
  await clock.advance('1m')
  const expected = [
    { name: 'rooms/a', state: { kind: 'live' } },
    { name: 'rooms/notes', state: { kind: 'stopped', reason: 'failed', error: { field: 'local' } } },
  ]
  expect(rooms.streams).toMatchObject(expected)
  rooms.retry()
  await clock.advance('2m')
  expect(rooms.streams).toMatchObject(expected)
})
