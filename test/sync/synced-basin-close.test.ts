import { expect, test, vi } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { kindsIn, openBasinServer, openTab } from './synced-basins.ts'

test('a synced basin that is closed leaves nothing', async () => {
  const server = await openBasinServer()
  const { clock } = server
  const tab = await openTab(server)
  for (const name of 'abcdef') await server.basin.stream(`rooms/${name}`).append(name)
  const rooms = await tab.start()
  const opened = rooms.stream('rooms/a')
  await clock.settle()
  await rooms.close()
  expect(tab.wakeUps.size).toBe(0)
  expect(tab.counts.open).toBe(0)
  expect(() => rooms.stream('rooms/a')).toThrow(expect.objectContaining({ code: 'closed' }))
  await expect(opened.append('late')).rejects.toMatchObject({ code: 'closed' })
  const { total } = tab.counts
  await clock.advance('1h')
  expect(tab.counts.total).toBe(total)
})

test('a synced basin that is closed waits for streams that were closing before', async () => {
  const server = await openBasinServer()
  const storage = faultyStorage(memory())
  const tab = await openTab(server, storage)
  for (const name of 'ab') await server.basin.stream(`rooms/${name}`).append(name)
  const rooms = await tab.start({ connectionsMax: 1 })
  const opened = rooms.stream('rooms/a')
  await server.clock.advance('1m')
  expect(kindsIn(rooms)).toEqual({ a: 'live', b: 'waiting' })

  storage.delay('append', '1h', { nth: 1 })
  await server.basin.stream('rooms/a').append('more')
  await server.clock.settle()
  const closing = opened.close()
  rooms.stream('rooms/b')
  await server.clock.advance('1m')
  expect(kindsIn(rooms)).toEqual({ a: 'waiting', b: 'live' })
  const closed = vi.fn()
  void rooms.close().then(closed)
  await server.clock.settle()
  expect(closed).not.toHaveBeenCalled()
  await server.clock.advance('1h')
  expect(closed).toHaveBeenCalled()
  await closing
})
