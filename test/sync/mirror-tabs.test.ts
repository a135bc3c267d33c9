import { describe, expect, it } from 'vitest'
import type { Coordinator } from '../../adapters/sync/coordinator.ts'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { contentOf, kindsOf, openDevice, openServer, until } from './mirrored.ts'

/** Two tabs: engines on one storage. */
async function openTabs() {
  const server = await openServer()
  const one = await openDevice(server)
  const other = await openDevice(server, one.storage)
  return { server, clock: server.clock, network: server.network, one, other }
}

/** Elects every candidate, as where they cannot know of each other. */
const alone: Coordinator = (_, { onElected }) => {
  let hasLeft = false
  queueMicrotask(() => hasLeft || onElected?.(true))
  return {
    post: () => {},
    leave: () => {
      hasLeft = true
    },
  }
}

/** Elects as in one thread, and deposes the first candidate when it is told to. */
function pausable() {
  let pause = () => {}
  const coordinator: Coordinator = (name, candidate) => {
    const join = () => coordinateInThread(name, candidate)
    let membership = join()
    pause = () => {
      membership.leave()
      candidate.onElected?.(false)
      membership = join()
    }
    return {
      post: (message) => membership.post(message),
      leave: () => membership.leave(),
    }
  }
  return { coordinator, pause: () => pause() }
}

describe('mirrors in two tabs', () => {
  it('share one connection and show the same states', async () => {
    const { server, clock, network, one, other } = await openTabs()
    await server.stream.append(['a', 'b'])
    network.delay('1ms')
    const first = one.start()
    const second = other.start()
    const kinds = kindsOf(second)
    await until(first, 'live', clock)
    await until(second, 'live', clock)
    // The first one finds out where the copy begins, and of which stream it is.
    expect(network.log).toHaveLength(2)
    expect(kinds).toEqual(['connecting', 'catching-up', 'live'])
    const late = other.start()
    await clock.settle()
    expect(late.state.kind).toBe('live')
    network.heal()
    network.refuse()
    await server.restart()
    const [offline, same] = [await until(first, 'offline', clock), await until(second, 'offline', clock)]
    expect(same).toEqual(offline)
    expect(same.error.message).toBe(offline.error.message)
    expect(await contentOf(other.local)).toEqual(await contentOf(server.stream))
  })

  it('continue when the one that copies is closed', async () => {
    const { server, clock, one, other } = await openTabs()
    await server.stream.append('a')
    const first = one.start()
    await until(first, 'live', clock)
    const second = other.start()
    await clock.settle()
    await first.close()
    await server.stream.append('b')
    await until(second, 'live', clock)
    await clock.settle()
    expect(await contentOf(other.local)).toEqual(await contentOf(server.stream))
  })

  it('continue when the one that copies is paused, and share again when it continues', async () => {
    const { server, clock, one, other } = await openTabs()
    await server.stream.append('a')
    const { coordinator, pause } = pausable()
    const first = one.start({ coordinator })
    await until(first, 'live', clock)
    const second = other.start()
    await clock.settle()
    const kinds = kindsOf(second)
    pause()
    await server.stream.append('b')
    await until(second, 'live', clock)
    expect(kinds).toContain('connecting')
    await until(first, 'live', clock)
    await clock.settle()
    expect(await contentOf(one.local)).toEqual(await contentOf(server.stream))
    await second.close()
    await server.stream.append('c')
    await until(first, 'live', clock)
    await clock.settle()
    expect(await contentOf(one.local)).toEqual(await contentOf(server.stream))
  })

  it('continue when `retry` of any of them is called', async () => {
    const { server, clock, network, one, other } = await openTabs()
    await server.stream.append('a')
    network.respond(403, { code: 'permission_denied' })
    const first = one.start()
    const second = other.start()
    await until(second, 'stopped', clock)
    network.heal()
    second.retry()
    await until(first, 'live', clock)
    await until(second, 'live', clock)
  })

  it('start again together when any of them does', async () => {
    const { server, clock, one, other } = await openTabs()
    await server.stream.append(['a', 'b', 'c'])
    const first = one.start()
    const second = other.start()
    await until(second, 'live', clock)
    await server.stream.delete()
    await server.stream.append(['x', 'y', 'z', '1'])
    await until(first, 'stopped', clock)
    await until(second, 'stopped', clock)
    await second.restart({ from: { tailOffset: 2 } })
    await until(first, 'live', clock)
    await until(second, 'live', clock)
    const { records } = await contentOf(one.local)
    expect(records.map(({ seqNum }) => seqNum)).toEqual([2, 3])
    await server.stream.append('2')
    await clock.settle()
    expect(await contentOf(other.local)).toMatchObject({ end: 5 })
  })
})

describe('mirrors that do not know of each other', () => {
  it('make one copy', { tags: ['slow'] }, async () => {
    const { server, clock, one, other } = await openTabs()
    for (let i = 0; i < 20; i++)
      await server.stream.append(Array.from({ length: 200 }, (_, j) => `${i}.${j}`))
    const copies = [one.start({ coordinator: alone }), other.start({ coordinator: alone })]
    await until(copies[0]!, 'live', clock)
    for (let i = 0; i < 20; i++) {
      await server.stream.append(`live ${i}`)
      await clock.advance('10s')
    }
    expect(await contentOf(one.local)).toEqual(await contentOf(server.stream))
    expect(copies.map(({ state }) => state.kind)).not.toContain('stopped')
  })

  it('never mix an old stream with the copy of a new one', { tags: ['slow'] }, async () => {
    const { server, clock, network, one, other } = await openTabs()
    const old = Array.from({ length: 600 }, (_, i) => `old ${i}`.padEnd(100, '.'))
    await server.stream.append(old)
    const first = one.start({ coordinator: alone })
    await until(first, 'live', clock)
    network.refuse()
    await server.restart()
    await until(first, 'offline', clock)
    network.heal()
    await server.stream.delete()
    await server.stream.append(Array.from({ length: 800 }, (_, i) => `new ${i}`))
    const second = other.start({ coordinator: alone })
    await second.restart()
    await until(second, 'live', clock)
    await clock.advance('1m')
    expect(await contentOf(one.local)).toEqual(await contentOf(server.stream))
    expect(await contentOf(other.local)).toEqual(await contentOf(server.stream))
    expect(first.state.kind).not.toBe('stopped')
  })
})

it('streams of different storages are copied at the same time', async () => {
  const server = await openServer()
  const devices = [await openDevice(server), await openDevice(server)]
  await server.stream.append('a')
  const copies = devices.map(({ start }) => start())
  for (const copy of copies) await until(copy, 'live', server.clock)
  for (const { local } of devices) expect(await contentOf(local)).toEqual(await contentOf(server.stream))
})
