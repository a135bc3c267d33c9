import { describe, expect, it } from 'vitest'
import { closeRecord, trimRecord } from '../../src/index.ts'
import { contentOf, kindsOf, openBoth, openDevice, openServer, until } from './mirrored.ts'

/** A mirror that has copied three records and is offline. */
async function openOffline() {
  const both = await openBoth()
  const { origin, start, clock, network } = both
  await origin.append(['a', 'b', 'c'])
  const copy = start()
  await until(copy, 'live', clock)
  network.refuse()
  await copy.close()
  const restarted = () => {
    network.heal()
    return start()
  }
  return { ...both, restarted }
}

describe('a mirror whose remote stream was trimmed', () => {
  it('stops with the gap, and keeps the copy', async () => {
    const { origin, local, clock, restarted, wakeUp } = await openOffline()
    await origin.append(['d', 'e', 'f', trimRecord(5)])
    await clock.advance('1h')
    const copy = restarted()
    const stopped = await until(copy, 'stopped', clock)
    expect(stopped).toMatchObject({ reason: 'trimmed', gap: { from: 3, to: 5 } })
    expect((await contentOf(local)).records).toHaveLength(3)
    const kinds = kindsOf(copy)
    wakeUp()
    await clock.advance('1h')
    expect(kinds).toEqual(['stopped'])
    copy.retry()
    await clock.settle()
    expect(kinds).toEqual(['stopped', 'connecting', 'stopped'])
  })

  it('continues where only the record that would be compared is missing', async () => {
    const { origin, local, clock, restarted } = await openOffline()
    await origin.append(['d', trimRecord(3)])
    await clock.advance('1h')
    await until(restarted(), 'live', clock)
    expect(await contentOf(local)).toEqual(await contentOf(origin))
  })

  it('starts again if the app says so', async () => {
    const { origin, local, clock, restarted } = await openOffline()
    await origin.append(['d', 'e', 'f', trimRecord(5)])
    await clock.advance('1h')
    const copy = restarted()
    await until(copy, 'stopped', clock)
    await copy.restart()
    await until(copy, 'live', clock)
    expect(await contentOf(local)).toEqual(await contentOf(origin))
    expect((await contentOf(local)).records.map(({ seqNum }) => seqNum)).toEqual([5, 6])
  })

  it('continues if everything that it has was trimmed, and nothing was appended since', async () => {
    const { server, origin, local, clock, network, start } = await openBoth()
    await origin.append(['a', 'b', trimRecord(3)])
    const copy = start()
    await until(copy, 'live', clock)
    expect((await contentOf(local)).records).toEqual([])
    network.refuse()
    await copy.close()
    network.heal()
    const again = start()
    await until(again, 'live', clock)
    await server.stream.append('c')
    await clock.settle()
    expect(await contentOf(local)).toEqual(await contentOf(origin))
  })
})

describe('a mirror whose remote stream was deleted', () => {
  it('stops as long as there is none', async () => {
    const { origin, local, clock, restarted } = await openOffline()
    await origin.delete()
    expect(await until(restarted(), 'stopped', clock)).toMatchObject({ reason: 'missing' })
    expect((await contentOf(local)).records).toHaveLength(3)
  })

  it.each([
    ['shorter', ['x']],
    ['equally long', ['a', 'b', 'x']],
    ['longer', ['x', 'y', 'z', '1', '2']],
  ])('never mixes it with a new one that is %s', async (_, bodies) => {
    const { origin, local, clock, restarted } = await openOffline()
    const before = await contentOf(local)
    await origin.delete()
    await origin.append(bodies)
    const copy = restarted()
    expect(await until(copy, 'stopped', clock)).toMatchObject({ reason: 'replaced' })
    expect(await contentOf(local)).toEqual(before)
    await copy.restart()
    await until(copy, 'live', clock)
    expect(await contentOf(local)).toEqual(await contentOf(origin))
  })

  it('notices it while it follows live', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append(['a', 'b'])
    const copy = start()
    await until(copy, 'live', clock)
    await origin.delete()
    await origin.append(['x', 'y', 'z'])
    expect(await until(copy, 'stopped', clock)).toMatchObject({ reason: 'replaced' })
    expect((await contentOf(local)).end).toBe(2)
  })

  it.each(['retry', 'wakeUp'] as const)('notices that a closed one was replaced after %s', async (call) => {
    const { origin, start, clock, wakeUp } = await openBoth()
    await origin.append(['a', closeRecord()])
    const copy = start()
    await until(copy, 'live', clock)
    const kinds = kindsOf(copy)
    await origin.delete()
    await origin.append(['b', 'c', 'd'])
    await clock.advance(call === 'retry' ? 1_000 : 30_000)
    expect(kinds).toEqual(['live'])
    if (call === 'retry') copy.retry()
    else wakeUp()
    expect(await until(copy, 'stopped', clock)).toMatchObject({ reason: 'replaced' })
  })

  it('waits for a stream that was never there', async () => {
    const { origin, local, start, clock } = await openBoth()
    const copy = start()
    const { error } = await until(copy, 'offline', clock)
    expect(['stream_not_found', 'basin_not_found']).toContain(error.code)
    await origin.append('a')
    copy.retry()
    await until(copy, 'live', clock)
    expect(await contentOf(local)).toEqual(await contentOf(origin))
  })
})

describe('a mirror stops', () => {
  it('when the server rejects its token, and continues with another one', async () => {
    const { origin, start, clock, network } = await openBoth()
    await origin.append('a')
    network.respond(401, { code: 'authn' })
    const copy = start()
    expect(await until(copy, 'stopped', clock)).toMatchObject({ reason: 'denied', error: { code: 'authn' } })
    network.heal()
    copy.retry()
    await until(copy, 'live', clock)
  })

  it('when the local stream is not a copy', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append('a')
    await local.append('mine')
    const stopped = await until(start(), 'stopped', clock)
    expect(stopped).toMatchObject({ reason: 'failed', error: { code: 'invalid', field: 'local' } })
    expect((await contentOf(local)).end).toBe(1)
  })

  it('when the local stream is one of a server', async () => {
    const server = await openServer()
    const { remote } = await openDevice(server)
    const device = await openDevice(server)
    const { mirror } = await import('../../adapters/sync/mirror.ts')
    const copy = mirror(device.remote, remote.sibling('other'))
    expect(await until(copy, 'stopped', server.clock)).toMatchObject({ error: { code: 'unsupported' } })
    await copy.close()
  })
})

it('a mirror stops if a stream was created again with the same last record', async () => {
  const { origin, local, start, clock, network } = await openBoth()
  const records = (first: string) => [
    { body: first, timestamp: 1_000 },
    { body: 'last', timestamp: 2_000 },
  ]
  await origin.append(records('old'))
  const copy = start()
  await until(copy, 'live', clock)
  network.refuse()
  await copy.close()
  await origin.delete()
  await origin.append([...records('new'), 'more'])
  network.heal()
  expect(await until(start(), 'stopped', clock)).toMatchObject({ reason: 'replaced' })
  expect((await local.read().toArray()).map(({ body }) => body)).toEqual(['old', 'last'])
})

it.each(['while it runs', 'while it is closed'])(
  'a mirror stops if a stream was created again with the same records %s',
  async (when) => {
    const { origin, local, start, clock, wakeUp, loseNetwork } = await openBoth()
    const records = Array.from({ length: 17 }, (_, index) => ({ body: `${index}`, timestamp: 1_000 + index }))
    await origin.append(records)
    const first = start()
    await until(first, 'live', clock)
    if (when === 'while it runs') loseNetwork()
    else await first.close()
    await origin.delete()
    await origin.append([{ ...records[0]!, body: 'new' }, ...records.slice(1), 'more'])
    const copy = when === 'while it runs' ? first : start()
    wakeUp()
    expect(await until(copy, 'stopped', clock)).toMatchObject({ reason: 'replaced' })
    expect((await local.read().toArray()).map(({ body }) => body)).toEqual(records.map(({ body }) => body))
    await copy.restart()
    await until(copy, 'live', clock)
    expect((await local.read({ count: 1 }).toArray()).map(({ body }) => body)).toEqual(['new'])
  },
)
