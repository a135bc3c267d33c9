// @module-tag slow

import { describe, expect, test } from 'vitest'
import { type Coordinator, coordinateInThread } from '../../adapters/sync/coordinator.ts'
import type { Basin } from '../../src/index.ts'
import { eventually, kindsIn, openBasinServer, openTab } from './synced-basins.ts'

const bodiesOf = async (basin: Basin, name: string) =>
  (await basin.stream(name).read().toArray()).map(({ body }) => body)

async function openBoth() {
  const server = await openBasinServer()
  return { server, clock: server.clock, tab: await openTab(server) }
}

describe('a synced basin', () => {
  test('lists the streams of the server below its prefix, and copies those that the app opens', async () => {
    const { server, clock, tab } = await openBoth()
    for (const name of ['rooms/a', 'rooms/b', 'other/c', '.outbox/rooms/d']) {
      await server.basin.stream(name).append(`in ${name}`)
    }
    const rooms = await tab.start()
    await eventually(clock, () => rooms.state.kind === 'live')
    expect(kindsIn(rooms)).toEqual({ a: 'waiting', b: 'waiting' })
    rooms.stream('rooms/a')
    await eventually(clock, () => kindsIn(rooms).a === 'live')
    expect(await bodiesOf(tab.local, 'rooms/a')).toEqual(['in rooms/a'])
    for (const name of ['rooms/b', 'other/c']) expect(await tab.local.stream(name).exists()).toBe(false)
  })

  test('finds streams that other devices create', async () => {
    const { server, clock, tab } = await openBoth()
    const other = await openTab(server)
    const [mine, theirs] = [await tab.start(), await other.start()]
    await eventually(clock, () => mine.state.kind === 'live')
    const names: string[][] = []
    mine.streams$.subscribe((streams) => names.push(streams.map(({ name }) => name)))
    await theirs.stream('rooms/new').append('hello')
    await clock.advance('31s')
    expect(names.at(0)).toEqual([])
    expect(names.at(-1)).toEqual(['rooms/new'])
    mine.stream('rooms/new')
    await clock.advance('1s')
    expect(await bodiesOf(tab.local, 'rooms/new')).toEqual(['hello'])
  })

  test('keeps connections for the most recently used streams, and moves them', async () => {
    const { server, clock, tab } = await openBoth()
    for (const name of 'abcdef') await server.basin.stream(`rooms/${name}`).append(name)
    const rooms = await tab.start()
    for (const name of 'abc') rooms.stream(`rooms/${name}`)
    await clock.advance('1m')
    const live = { a: 'live', b: 'live', c: 'live', d: 'waiting', e: 'waiting', f: 'waiting' }
    expect(kindsIn(rooms)).toEqual(live)
    const opened = rooms.stream('rooms/e')
    await clock.advance('1m')
    expect(kindsIn(rooms)).toEqual({ ...live, a: 'waiting', e: 'live' })
    await server.basin.stream('rooms/e').append('more')
    await clock.settle()
    expect(await bodiesOf(tab.local, 'rooms/e')).toEqual(['e', 'more'])
    // An append is a use too.
    await rooms.stream('rooms/a', { isBackground: true }).append('mine')
    await clock.advance('1m')
    expect(kindsIn(rooms)).toEqual({ ...live, b: 'waiting', e: 'live' })
    // To open a stream for a list is none.
    rooms.stream('rooms/d', { isBackground: true })
    await clock.advance('1m')
    expect(kindsIn(rooms)).toEqual({ ...live, b: 'waiting', e: 'live' })
    await opened.close()
    await clock.advance('1m')
    expect(kindsIn(rooms)).toEqual(live)
  })

  test('catches up once with every open stream without a connection, and then makes no requests', async () => {
    const { server, clock, tab } = await openBoth()
    const names = Array.from({ length: 20 }, (_, index) => `rooms/${index}`)
    for (const name of names) await server.basin.stream(name).append(name)
    const rooms = await tab.start({ discoverMs: 86_400_000 })
    for (const name of names) rooms.stream(name)
    await eventually(clock, async () => {
      const bodies = await Promise.all(
        names.map((name) => bodiesOf(tab.local, name).catch((): string[] => [])),
      )
      return bodies.every((all) => all.length === 1)
    })
    await clock.advance('1m')
    const { total } = tab.counts
    await clock.advance('1h')
    expect(tab.counts.total).toBe(total)
    expect(tab.counts.open).toBe(3)
    expect(Object.values(kindsIn(rooms)).filter((kind) => kind === 'live')).toHaveLength(3)
  })

  test('catches up again as often as the app asks for it', async () => {
    const { server, clock, tab } = await openBoth()
    for (const name of 'abcde') await server.basin.stream(`rooms/${name}`).append(name)
    const rooms = await tab.start({ discoverMs: 15_000 })
    for (const name of 'eabc') rooms.stream(`rooms/${name}`)
    await clock.advance('1m')
    await server.basin.stream('rooms/e').append('news')
    await clock.advance('20s')
    expect(await bodiesOf(tab.local, 'rooms/e')).toEqual(['e', 'news'])
    expect(kindsIn(rooms).e).toBe('waiting')
  })

  test('catches up with every open stream although a round takes longer than the time between two', async () => {
    const { server, clock, tab } = await openBoth()
    const names = Array.from({ length: 8 }, (_, index) => `rooms/${index}`)
    for (const name of names) await server.basin.stream(name).append(name)
    tab.network.delay('2s')
    const rooms = await tab.start({ connectionsMax: 1, discoverMs: 10_000 })
    for (const name of names) rooms.stream(name)
    for (const name of names) {
      await eventually(clock, async () => (await bodiesOf(tab.local, name).catch(() => [])).length === 1)
    }
  })

  test('visits every open stream although the records of one are not taken', async () => {
    const { server, clock, tab } = await openBoth()
    for (const name of 'abc') await server.basin.stream(`rooms/${name}`).append(name)
    tab.network.respond(503, {
      code: 'unavailable',
      when: ({ method, url }) => method === 'POST' && url.includes('rooms%2Fa/records'),
    })
    const rooms = await tab.start({ connectionsMax: 1 })
    await rooms.stream('rooms/a').append('mine')
    for (const name of 'bc') rooms.stream(`rooms/${name}`, { isBackground: true })
    for (const name of 'bc')
      await eventually(
        clock,
        async () => (await bodiesOf(tab.local, `rooms/${name}`).catch(() => [])).length === 1,
      )
  })

  test('shows that it is live once, however often it lists the streams', async () => {
    const { clock, tab } = await openBoth()
    const rooms = await tab.start()
    const kinds: string[] = []
    const watching = rooms.state$.subscribe(({ kind }) => kinds.push(kind))
    await clock.advance('5m')
    watching.unsubscribe()
    expect(kinds).toEqual(['connecting', 'live'])
  })

  test.each([1, 3])('never follows more streams than it has connections: %d', async (connectionsMax) => {
    const { server, clock, tab } = await openBoth()
    const names = Array.from({ length: 6 }, (_, index) => `rooms/${index}`)
    for (const name of names) await server.basin.stream(name).append(name)
    const rooms = await tab.start({ connectionsMax, discoverMs: 1_000 })
    tab.network.delay('20ms')
    for (let round = 0; round < 6; round++) {
      for (const name of names) {
        void rooms.stream(name).append(`${round}`)
        await clock.advance('100ms')
      }
      if (round === 2) tab.network.refuse()
      if (round === 4) {
        tab.network.heal()
        tab.network.delay('20ms')
      }
    }
    await eventually(clock, async () => {
      const stored = await Promise.all(names.map((name) => bodiesOf(server.basin, name)))
      return stored.every((bodies) => bodies.length === 7)
    })
    // One that is being opened cannot be taken back.
    expect(tab.counts.mostReads).toBeLessThanOrEqual(connectionsMax + 1)
    await clock.advance('1m')
    expect(tab.counts.reads).toBe(connectionsMax)
    for (const name of names) {
      expect(await bodiesOf(server.basin, name)).toEqual([name, ...Array.from('012345')])
    }
  })
})

describe('pauses between requests', () => {
  /** Streams that the app has open, more than there are connections, and requests in a minute of a failure. */
  async function openFailing() {
    const both = await openBoth()
    const { server, clock, tab } = both
    const names = Array.from('abcdefgh', (name) => `rooms/${name}`)
    for (const name of names) await server.basin.stream(name).append(name)
    const start = async (options: Parameters<typeof tab.start>[0] = {}) => {
      const rooms = await tab.start(options)
      for (const name of names) await rooms.stream(name).append('mine')
      return rooms
    }
    const inMinute = async () => {
      await clock.advance('2m')
      tab.counts.paths.length = 0
      await clock.advance('10m')
      return tab.counts.paths.length / 10
    }
    return { ...both, names, start, inMinute }
  }

  type Failing = Awaited<ReturnType<typeof openFailing>>
  const isList = (path: string) => path.endsWith('/streams')
  test.each<[string, number, (world: Failing) => unknown]>([
    ['nothing fails', 20, () => {}],
    ['there is no network', 60, ({ tab }) => tab.network.refuse()],
    ['the server is overloaded', 60, ({ tab }) => tab.network.respond(503, { code: 'unavailable' })],
    ['the token is not valid', 1, ({ tab }) => tab.network.respond(401, { code: 'authn' })],
    [
      'streams cannot be listed',
      60,
      ({ tab }) => tab.network.refuse({ when: ({ url }) => !url.includes('/records') }),
    ],
    [
      'streams cannot be read',
      60,
      ({ tab }) =>
        tab.network.refuse({ when: ({ method, url }) => method === 'GET' && url.includes('/records') }),
    ],
    [
      'records are not taken',
      60,
      ({ tab }) =>
        tab.network.refuse({ when: ({ method, url }) => method === 'POST' && url.includes('/records') }),
    ],
  ])('while %s, at most %d a minute', async (_, most, fail) => {
    const world = await openFailing()
    fail(world)
    await world.start()
    expect(await world.inMinute()).toBeLessThanOrEqual(most)
    expect(world.tab.counts.paths.filter(isList).length).toBeLessThanOrEqual(10 * 4)
  })

  test('while streams are missing that were to be copied, at most 60 a minute', async () => {
    const { server, clock, tab, names, inMinute } = await openFailing()
    tab.network.refuse({ when: ({ url }) => url.includes('/records') })
    const rooms = await tab.start({ createStreams: false })
    for (const name of names) rooms.stream(name)
    await clock.advance('10s')
    for (const name of names) await server.basin.stream(name).delete()
    tab.network.heal()
    expect(await inMinute()).toBeLessThanOrEqual(60)
    expect(tab.counts.paths.filter(isList).length).toBeLessThanOrEqual(10 * 4)
  })
})

describe('a synced basin without a network', () => {
  test('knows its streams, and sends what was written once there is one', async () => {
    const { server, clock, tab } = await openBoth()
    const names = Array.from('abcdefgh', (name) => `rooms/${name}`)
    for (const name of names.slice(0, 4)) await server.basin.stream(name).append('theirs')
    const before = await tab.start()
    for (const name of names.slice(0, 4)) before.stream(name)
    await clock.advance('1m')
    await before.close()

    const later = await openTab(server, tab.storage)
    later.network.refuse()
    const rooms = await later.start()
    expect(rooms.streams.map(({ name }) => name)).toEqual(names.slice(0, 4))
    const opened = names.map((name) => rooms.stream(name))
    expect(rooms.streams.map(({ name }) => name)).toEqual(names)
    for (const stream of opened) await stream.append('mine')
    await clock.advance('1m')
    expect(rooms.state).toMatchObject({ kind: 'offline', error: { code: 'unavailable' } })
    expect((await rooms.stream('rooms/h').read().toArray()).map(({ isPending }) => isPending)).toEqual([true])
    later.network.heal()
    await eventually(clock, async () => {
      const stored = await Promise.all(
        names.map((name) => bodiesOf(server.basin, name).catch((): string[] => [])),
      )
      return stored.every((bodies) => bodies.includes('mine'))
    })
    expect(await bodiesOf(server.basin, 'rooms/a')).toEqual(['theirs', 'mine'])
    expect(later.counts.mostReads).toBeLessThanOrEqual(3)
  })

  test('sends what an app that was closed has left', async () => {
    const { server, clock, tab } = await openBoth()
    tab.network.refuse()
    const before = await tab.start()
    const names = Array.from('abcdefgh', (name) => `rooms/${name}`)
    for (const name of names) await before.stream(name).append('mine')
    await before.close()

    const rooms = await (await openTab(server, tab.storage)).start()
    await eventually(clock, async () => {
      const stored = await Promise.all(
        names.map((name) => bodiesOf(server.basin, name).catch((): string[] => [])),
      )
      return stored.every((bodies) => bodies.length === 1)
    })
    await clock.advance('1m')
    expect(rooms.streams).toHaveLength(8)
    expect(new Set(Object.values(kindsIn(rooms)))).toEqual(new Set(['waiting']))
  })

  test('connects at once when the app asks for it', async () => {
    const { server, clock, tab } = await openBoth()
    await server.basin.stream('rooms/a').append('a')
    tab.network.refuse()
    const rooms = await tab.start()
    rooms.stream('rooms/a')
    await clock.advance('1h')
    expect(kindsIn(rooms)).toEqual({ a: 'offline' })
    tab.network.heal()
    rooms.retry()
    await clock.settle()
    expect(rooms.state.kind).toBe('live')
    expect(kindsIn(rooms)).toEqual({ a: 'live' })
  })
})

describe('the tabs of a device', () => {
  test('share the connections and show the same states', async () => {
    const { server, clock, tab } = await openBoth()
    for (const name of 'abcdef') await server.basin.stream(`rooms/${name}`).append(name)
    const other = await openTab(server, tab.storage)
    const rooms = await tab.start()
    await clock.settle()
    const same = await other.start()
    await clock.advance('1m')
    const opened = same.stream('rooms/a')
    rooms.stream('rooms/a')
    await clock.advance('1m')
    expect(opened.state.kind).toBe('live')
    expect(kindsIn(same)).toEqual(kindsIn(rooms))
    expect(kindsIn(same)).toMatchObject({ a: 'live', b: 'waiting' })
    expect(same.state).toEqual(rooms.state)
    expect(tab.counts.reads + other.counts.reads).toBe(1)
    for (const name of 'bcd') same.stream(`rooms/${name}`)
    await clock.advance('1m')
    expect(opened.state.kind).toBe('waiting')
    expect(kindsIn(rooms).a).toBe('waiting')
    expect(tab.counts.reads + other.counts.reads).toBe(3)
    await opened.append('mine')
    await clock.advance('1m')
    expect(await bodiesOf(server.basin, 'rooms/a')).toEqual(['a', 'mine'])
    expect(opened.state.kind).toBe('live')
    expect(tab.counts.reads + other.counts.reads).toBe(3)
  })

  test('visit the streams of all of them, one at a time', async () => {
    const { server, clock, tab } = await openBoth()
    for (const name of 'abcd') await server.basin.stream(`rooms/${name}`).append(name)
    const other = await openTab(server, tab.storage)
    const [rooms, same] = [await tab.start(), await other.start()]
    for (const name of 'ab') same.stream(`rooms/${name}`)
    for (const name of 'bcd') rooms.stream(`rooms/${name}`)
    await clock.advance('1m')
    for (const name of 'abcd') expect(await bodiesOf(tab.local, `rooms/${name}`)).toEqual([name])
    await server.basin.stream('rooms/a').append('news')
    await clock.advance('31s')
    expect(await bodiesOf(tab.local, 'rooms/a')).toEqual(['a', 'news'])
    expect(kindsIn(same)).toMatchObject({ a: 'waiting', b: 'live' })
    expect(tab.counts.reads + other.counts.reads).toBe(3)
  })

  test('know of a stream that one of them opens, and of those that are found later', async () => {
    const { server, clock, tab } = await openBoth()
    const other = await openTab(server, tab.storage)
    const [rooms, same] = [await tab.start(), await other.start()]
    await clock.settle()
    await same.stream('rooms/mine').append('mine')
    await server.basin.stream('rooms/found').append('theirs')
    await clock.advance('1m')
    expect(kindsIn(rooms)).toEqual({ found: 'waiting', mine: 'waiting' })
    expect(kindsIn(same)).toEqual({ found: 'waiting', mine: 'live' })
    expect(await bodiesOf(server.basin, 'rooms/mine')).toEqual(['mine'])
  })

  test('continue when the one that syncs is closed', async () => {
    const { server, clock, tab } = await openBoth()
    await server.basin.stream('rooms/a').append('a')
    const other = await openTab(server, tab.storage)
    const rooms = await tab.start()
    await clock.settle()
    const same = await other.start()
    const opened = same.stream('rooms/a')
    await clock.advance('1m')
    await rooms.close()
    expect(rooms.state.kind).toBe('closed')
    await clock.advance('1m')
    expect(opened.state.kind).toBe('live')
    await opened.append('mine')
    await clock.settle()
    expect(await bodiesOf(server.basin, 'rooms/a')).toEqual(['a', 'mine'])
  })
})

describe('a stream that was deleted on the server', () => {
  test('stays readable if it has records, and leaves the list if it was never opened', async () => {
    const { server, clock, tab } = await openBoth()
    await server.basin.stream('rooms/full').append('kept')
    await server.basin.createStream('rooms/empty')
    const rooms = await tab.start()
    rooms.stream('rooms/full')
    await clock.advance('1m')
    expect(kindsIn(rooms)).toEqual({ empty: 'waiting', full: 'live' })
    await server.basin.stream('rooms/full').delete()
    await server.basin.stream('rooms/empty').delete()
    await clock.advance('2m')
    expect(rooms.streams).toMatchObject([
      { name: 'rooms/full', state: { kind: 'stopped', reason: 'missing' } },
    ])
    expect(await bodiesOf(tab.local, 'rooms/full')).toEqual(['kept'])
    expect(await server.basin.stream('rooms/full').exists()).toBe(false)
  })

  test('is copied after a restart if it is opened in the background', async () => {
    const { server, clock, tab } = await openBoth()
    await server.basin.stream('rooms/a').append('old')
    const rooms = await tab.start()
    const opened = rooms.stream('rooms/a', { isBackground: true })
    await clock.advance('1m')
    await server.basin.stream('rooms/a').delete()
    await server.basin.stream('rooms/a').append('new')
    await clock.advance('1m')
    expect(opened.state).toMatchObject({ kind: 'stopped', reason: 'replaced' })
    await opened.mirror.restart()
    await clock.advance('1m')
    expect(await bodiesOf(tab.local, 'rooms/a')).toEqual(['new'])
    expect(opened.state.kind).toBe('live')
  })
})

/** Elects the tabs, until those that use it are killed: they send nothing any more. */
function killable() {
  const leaves: (() => void)[] = []
  let isKilled = false
  const coordinator: Coordinator = (name, candidate) => {
    const membership = coordinateInThread(name, candidate)
    leaves.push(membership.leave)
    return { ...membership, post: (message) => isKilled || membership.post(message) }
  }
  const kill = () => {
    isKilled = true
    for (const leave of leaves) leave()
  }
  return { coordinator, kill }
}

test('a tab that is killed leaves its connections to others', async () => {
  const { server, clock, tab } = await openBoth()
  for (const name of 'ab') await server.basin.stream(`rooms/${name}`).append(name)
  const other = await openTab(server, tab.storage)
  const { coordinator, kill } = killable()
  const mine = await tab.start({ connectionsMax: 1 })
  const theirs = await other.start({ connectionsMax: 1, coordinator })
  mine.stream('rooms/a')
  await clock.advance('1s')
  theirs.stream('rooms/b')
  await clock.advance('5m')
  expect(kindsIn(mine)).toEqual({ a: 'waiting', b: 'waiting' })
  other.network.refuse()
  kill()
  await clock.advance('2m')
  expect(kindsIn(mine)).toEqual({ a: 'live', b: 'waiting' })
})

test('a tab that was frozen names its streams when it continues', async () => {
  const { server, clock, tab } = await openBoth()
  for (const name of 'ab') await server.basin.stream(`rooms/${name}`).append(name)
  const other = await openTab(server, tab.storage)
  let isFrozen = false
  const coordinator: Coordinator = (name, { onElected, onMessage }) => {
    const receive = (message: unknown) => isFrozen || onMessage(message)
    const membership = coordinateInThread(name, { onElected, onMessage: receive })
    return { ...membership, post: (message) => isFrozen || membership.post(message) }
  }
  const mine = await tab.start({ connectionsMax: 1 })
  const theirs = await other.start({ connectionsMax: 1, coordinator })
  mine.stream('rooms/a')
  await clock.advance('1s')
  theirs.stream('rooms/b')
  await clock.settle()
  isFrozen = true
  await clock.advance('2m')
  expect(kindsIn(mine).a).toBe('live')
  isFrozen = false
  for (const wake of other.wakeUps) wake()
  await clock.advance('1m')
  expect(kindsIn(mine).a).toBe('waiting')
  await server.basin.stream('rooms/b').append('news')
  await clock.advance('1s')
  expect(await bodiesOf(other.local, 'rooms/b')).toEqual(['b', 'news'])
})

describe('a stream that the server refuses', () => {
  test('to create is waited for, and its records are kept', async () => {
    const { server, clock, tab } = await openBoth()
    const isCreation = ({ method, url }: Request) => method === 'POST' && !url.includes('/records')
    tab.network.respond(403, { code: 'permission_denied', when: isCreation })
    const rooms = await tab.start()
    const opened = rooms.stream('rooms/forbidden')
    await opened.append('mine')
    await clock.advance('5m')
    expect(opened.state).toMatchObject({ kind: 'offline', error: { code: 'stream_not_found' } })
    await server.basin.createStream('rooms/forbidden')
    await clock.advance('1m')
    expect(opened.state.kind).toBe('live')
    expect(await bodiesOf(server.basin, 'rooms/forbidden')).toEqual(['mine'])
    expect(opened.outbox.failed).toEqual([])
  })

  test('to read continues after a retry of all streams, whether it was used or not', async () => {
    const { server, clock, tab } = await openBoth()
    for (const name of 'abcdef') await server.basin.stream(`rooms/${name}`).append(name)
    tab.network.respond(403, { code: 'permission_denied', when: ({ url }) => url.includes('/records') })
    const rooms = await tab.start()
    for (const name of 'abcdef') rooms.stream(`rooms/${name}`, { isBackground: name > 'b' })
    await clock.advance('1m')
    expect(new Set(Object.values(kindsIn(rooms)))).toEqual(new Set(['stopped']))
    tab.network.heal()
    rooms.retry()
    await clock.advance('1m')
    for (const name of 'abcdef') expect(await bodiesOf(tab.local, `rooms/${name}`)).toEqual([name])
    expect(Object.values(kindsIn(rooms))).not.toContain('stopped')
  })

  test('to list leaves the streams that are used in sync', async () => {
    const { server, clock, tab } = await openBoth()
    await server.basin.stream('rooms/a').append('a')
    tab.network.respond(403, {
      code: 'permission_denied',
      when: ({ method, url }) => method === 'GET' && !url.includes('/records'),
    })
    const rooms = await tab.start()
    const opened = rooms.stream('rooms/a')
    await clock.advance('1m')
    expect(rooms.state).toMatchObject({ kind: 'stopped', reason: 'denied' })
    expect(opened.state.kind).toBe('live')
  })
})

test.each([
  ['no connection', { connectionsMax: 0 }, 'connectionsMax'],
  ['lists every 999 ms', { discoverMs: 999 }, 'discoverMs'],
  ['a prefix of internal streams', { prefix: '.outbox/x' }, 'prefix'],
  ['a prefix of 505 bytes', { prefix: 'x'.repeat(505) }, 'prefix'],
  ['an unknown member of a start', { from: { count: 1 } as object }, 'from.count'],
  ['a negative start', { from: { tailOffset: -1 } }, 'tailOffset'],
  ['an outbox without room', { recordsMax: 0 }, 'recordsMax'],
  ['an outbox smaller than a batch', { bytesMax: 1_000 }, 'bytesMax'],
  ['no remote basin', { remote: undefined } as object, 'remote'],
])('refuses %s', async (_, options, field) => {
  const { tab } = await openBoth()
  await expect(tab.start(options)).rejects.toMatchObject({ code: 'invalid', field })
})

test.each([
  ['without the prefix', 'other/a'],
  ['of 505 bytes', `rooms/${'x'.repeat(499)}`],
  ['with U+0000', 'rooms/\0'],
])('refuses a name %s', async (_, name) => {
  const { tab } = await openBoth()
  const rooms = await tab.start()
  expect(() => rooms.stream(name)).toThrow(expect.objectContaining({ code: 'invalid', field: 'name' }))
})
