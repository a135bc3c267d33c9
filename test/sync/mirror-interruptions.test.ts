import { describe, expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { contentOf, kindsOf, openBoth, openDevice, openServer, until } from './mirrored.ts'

/** Bodies of 200 bytes, so that they take several responses of the unreliable network. */
function bodies(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${i}`.padEnd(200, '.'))
}

describe('a mirror resumes', () => {
  it('after lost connections, without gaps and repetitions', async () => {
    const { origin, local, start, clock, network } = await openBoth()
    for (let i = 0; i < 3; i++) await origin.append(bodies(100))
    network.cut(10_000, { nth: 1 })
    network.cut(30_000, { nth: 2 })
    network.loseResponse({ nth: 3 })
    network.drop({ nth: 4 })
    network.respond(503, { nth: 5 })
    const copy = start()
    const kinds = kindsOf(copy)
    await until(copy, 'live', clock)
    expect(await contentOf(local)).toEqual(await contentOf(origin))
    expect(kinds.filter((kind) => kind === 'offline').length).toBeGreaterThan(1)
  })

  it('where it ended when it was closed', async () => {
    const { origin, local, start, clock, network } = await openBoth()
    await origin.append(['a', 'b'])
    const first = start()
    await until(first, 'live', clock)
    await first.close()
    expect(first.state).toEqual({ kind: 'closed' })
    await origin.append(['c', 'd'])
    const before = network.log.length
    network.delay('1ms')
    const second = start()
    await until(second, 'live', clock)
    expect(await contentOf(local)).toEqual(await contentOf(origin))
    expect(network.log.slice(before)).toHaveLength(1)
  })

  it('with pauses that grow, and says when it tries again', async () => {
    const { origin, start, clock, network } = await openBoth()
    await origin.append('a')
    network.refuse()
    const copy = start()
    const pauses: number[] = []
    copy.state$.subscribe((state) => {
      if (state.kind === 'offline') pauses.push(state.nextAttemptAt - clock.now())
    })
    await clock.advance('3m')
    expect(pauses.slice(0, 8)).toEqual([375, 750, 1_500, 3_000, 6_000, 12_000, 22_500, 22_500])
    expect(copy.state).toMatchObject({ kind: 'offline', error: { code: 'unavailable' } })
  })

  it('after a short pause when the connection before was worth something', async () => {
    const { server, start, clock } = await openBoth()
    await server.stream.append('a')
    const copy = start()
    const pauses: number[] = []
    copy.state$.subscribe((state) => {
      if (state.kind === 'offline') pauses.push(state.nextAttemptAt - clock.now())
    })
    await until(copy, 'live', clock)
    for (let i = 0; i < 4; i++) {
      await server.stream.append('more')
      await clock.settle()
      await server.restart()
      await until(copy, 'live', clock)
    }
    expect(pauses).toEqual([375, 375, 375, 375])
  })

  it('at once when the page says that there may be a connection', { tags: ['slow'] }, async () => {
    const { origin, start, clock, network, wakeUp } = await openBoth()
    await origin.append('a')
    network.refuse()
    const copy = start()
    await clock.advance('1h')
    network.heal()
    const { nextAttemptAt } = await until(copy, 'offline', clock)
    expect(nextAttemptAt).toBeGreaterThan(clock.now())
    wakeUp()
    await clock.settle()
    expect(copy.state.kind).toBe('live')
  })

  it('at once when the computer wakes up after a day', async () => {
    const server = await openServer()
    const { clock, stream, network } = server
    const device = await openDevice(server)
    await stream.append('a')
    const copy = device.start()
    await until(copy, 'live', clock)
    network.delay('1ms')
    device.wakeUp()
    await clock.settle()
    expect(network.log).toHaveLength(0)
    clock.jump(86_400_000)
    device.wakeUp()
    await clock.advance('1s')
    expect(network.log).toHaveLength(1)
    expect(copy.state.kind).toBe('live')
  })

  it('when the server said that it may, and no event of the page makes that sooner', async () => {
    const { origin, start, clock, network, wakeUp } = await openBoth()
    await origin.append('a')
    network.respond(503, { headers: { 'retry-after': '120' } })
    const copy = start()
    const { nextAttemptAt, error } = await until(copy, 'offline', clock)
    expect(error.retryAfterMs).toBe(120_000)
    expect(nextAttemptAt - clock.now()).toBe(120_375)
    network.heal()
    wakeUp()
    await clock.advance('2m')
    expect(copy.state.kind).toBe('offline')
    await clock.advance('1s')
    expect(copy.state.kind).toBe('live')
  })

  it('at once when the app asks for it, whatever the server said', async () => {
    const { origin, start, clock, network } = await openBoth()
    await origin.append('a')
    network.respond(429, { headers: { 'retry-after': '120' } })
    const copy = start()
    await until(copy, 'offline', clock)
    network.heal()
    copy.retry()
    await clock.settle()
    expect(copy.state.kind).toBe('live')
  })

  it('after the device lost its network, which it notices at once', { tags: ['slow'] }, async () => {
    const { origin, start, clock, network, loseNetwork, wakeUp } = await openBoth()
    await origin.append('a')
    const copy = start()
    await until(copy, 'live', clock)
    network.refuse()
    loseNetwork()
    await clock.settle()
    expect(copy.state).toMatchObject({ kind: 'offline', error: { code: 'unavailable' } })
    await clock.advance('1h')
    expect(copy.state.kind).toBe('offline')
    network.heal()
    wakeUp()
    await clock.settle()
    expect(copy.state.kind).toBe('live')
  })

  it('after the server was restarted', async () => {
    const { server, local, start, clock } = await openBoth()
    await server.stream.append(['a', 'b'])
    const copy = start()
    await until(copy, 'live', clock)
    const kinds = kindsOf(copy)
    await server.restart()
    await server.stream.append('c')
    await clock.settle()
    await until(copy, 'live', clock)
    expect(kinds).toEqual(['live', 'offline', 'connecting', 'catching-up', 'live'])
    expect(await contentOf(local)).toEqual(await contentOf(server.stream))
  })

  it('after the local storage failed', async () => {
    const server = await openServer()
    const { clock } = server
    const storage = faultyStorage(memory())
    const device = await openDevice(server, storage)
    await server.stream.append(bodies(10))
    const copy = device.start()
    await until(copy, 'live', clock)
    storage.fail('append')
    await server.stream.append('more')
    const { error } = await until(copy, 'offline', clock)
    expect(error.code).toBe('storage')
    storage.heal()
    await until(copy, 'live', clock)
    expect(await contentOf(device.local)).toEqual(await contentOf(server.stream))
  })

  it.each([
    ['deleted', 1],
    ['created', 2],
  ])('after a restart that failed as the copy was %s', async (_, nth) => {
    const server = await openServer()
    const { clock } = server
    const storage = faultyStorage(memory())
    const { start, local } = await openDevice(server, storage)
    await server.stream.append(bodies(10))
    const copy = start()
    await until(copy, 'live', clock)
    storage.fail('commit', { nth, after: true })
    await expect(copy.restart()).rejects.toMatchObject({ code: 'storage' })
    storage.heal()
    await clock.advance('1m')
    expect(copy.state.kind).toBe('live')
    expect(await contentOf(local)).toEqual(await contentOf(server.stream))
  })
})

describe('a mirror that is closed', () => {
  it.each(['connecting', 'catching up', 'live', 'offline'])('while it is %s leaves nothing', async (when) => {
    const { origin, start, clock, network, hw, wakeUps, server } = await openBoth()
    await origin.append(bodies(1_000))
    if (when === 'offline') network.refuse()
    const copy = start()
    if (when === 'live' || when === 'offline') await until(copy, when, clock)
    if (when === 'catching up') for (let i = 0; i < 30; i++) await Promise.resolve()
    await copy.close()
    expect(copy.state).toEqual({ kind: 'closed' })
    expect(wakeUps.size).toBe(0)
    await clock.advance('1m')
    for (const engine of [hw, server.hw]) {
      expect(engine.stats()).toMatchObject({ openSessions: 0, openReads: 0, pendingAppends: 0 })
      await engine.close()
    }
    expect(clock.pending).toBe(0)
  })

  it('completes its states, also for those that subscribe later', async () => {
    const { start } = await openBoth()
    const copy = start()
    const seen: string[] = []
    copy.state$.subscribe({ complete: () => seen.push('complete') })
    await copy.close()
    copy.state$.subscribe({ next: ({ kind }) => seen.push(kind), complete: () => seen.push('complete') })
    expect(seen).toEqual(['complete', 'closed', 'complete'])
  })

  it('before it begins does nothing', async () => {
    const { start, clock, network, local } = await openBoth()
    network.delay('1ms')
    const copy = start({ signal: AbortSignal.abort() })
    await clock.settle()
    expect(copy.state).toEqual({ kind: 'closed' })
    expect(network.log).toEqual([])
    expect(await local.exists()).toBe(false)
  })

  it.each(['its signal', 'the local engine'])('by %s ends too', async (what) => {
    const { origin, start, clock, hw } = await openBoth()
    await origin.append('a')
    const control = new AbortController()
    const copy = start({ signal: control.signal })
    await until(copy, 'live', clock)
    if (what === 'its signal') control.abort()
    else await hw.close()
    await clock.settle()
    expect(copy.state.kind).toBe('closed')
  })
})

it.each([401, 403])(
  'a mirror goes on after a gateway has answered with %i instead of the server',
  async (status) => {
    const { origin, start, clock, server } = await openBoth()
    await origin.append('a')
    const copy = start()
    await until(copy, 'live', clock)
    server.settings.gatewayStatus = status
    await server.restart()
    await clock.advance('10m')
    expect(copy.state).toMatchObject({ kind: 'offline', error: { code: 'unavailable' } })
    server.settings.gatewayStatus = undefined
    await until(copy, 'live', clock)
  },
)
