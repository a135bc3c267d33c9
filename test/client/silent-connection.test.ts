import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type AppendSession, open } from '../../src/index.ts'
import { outcomeOf } from '../support/index.ts'

/** Relays connections to a port. Those that exist when `swallow` is called lose all further bytes. */
async function startRelay(port: number) {
  const pairs = new Set<{ readonly sockets: readonly Socket[]; isSilent: boolean }>()
  const relay = createServer((client) => {
    const server = connectTcp(port, '127.0.0.1')
    const pair = { sockets: [client, server], isSilent: false }
    pairs.add(pair)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('data', (chunk) => {
        if (!pair.isSilent) to.write(chunk)
      })
      from.on('error', () => {})
      from.on('close', () => to.destroy())
    }
  })
  await once(relay.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const { sockets } of pairs) for (const socket of sockets) socket.destroy()
    relay.close()
  })
  return {
    url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    connections: () => pairs.size,
    swallow: () => {
      for (const pair of pairs) pair.isSilent = true
    },
  }
}

/** A client behind a relay. Only the client's timers are virtual. */
async function connectThroughRelay(requestTimeoutMs = 30_000) {
  const hw = await open({ storage: memory() })
  const server = await serve(hw, { port: 0, auth: 'none' })
  const relay = await startRelay(Number(new URL(server.url).port))
  const clock = virtualClock()
  const remote = await connect({ url: relay.url, clock, requestTimeoutMs, random: () => 0.5 })
  onTestFinished(async () => {
    await remote.close()
    await server.close({ graceMs: 0 })
    await hw.close()
  })
  const stream = hw.basin('basin').stream('stream')
  await stream.append('before')
  return { relay, clock, stream, remote: remote.basin('basin').stream('stream') }
}

it('a follower and new reads recover from a connection that has gone silent', async () => {
  const { relay, clock, stream, remote } = await connectThroughRelay()
  const seen: string[] = []
  const following = remote.follow({ seqNum: 0 }).records$
  const subscription = following.subscribe(({ body }) => seen.push(body))
  await vi.waitFor(() => expect(seen).toEqual(['before']))
  const before = relay.connections()
  relay.swallow()
  await stream.append('after')
  await vi.waitFor(async () => {
    await clock.advance('1s')
    expect(seen).toEqual(['before', 'after'])
  })
  const known = relay.connections()
  expect(known).toBeGreaterThan(before)
  const first = await new Promise<string>((resolve) => {
    const one = following.subscribe(({ body }) => {
      resolve(body)
      one.unsubscribe()
    })
  })
  expect(first).toBe('before')
  expect(relay.connections()).toBe(known)
  subscription.unsubscribe()
})

it('an append session does not open on a connection that has swallowed the appends of another', async () => {
  const { relay, clock, remote } = await connectThroughRelay(5_000)
  const appended = async (session: AppendSession, body: string) => (await session.submit(body)).ack()
  const session = await remote.appendSession()
  await appended(session, 'one')
  relay.swallow()
  const outcome = outcomeOf(appended(session, 'two'))
  const timePasses = setInterval(() => void clock.advance('100ms'), 1)
  onTestFinished(() => clearInterval(timePasses))
  expect(await outcome).toBe('unavailable')
  const next = await remote.appendSession()
  expect(await appended(next, 'three')).toMatchObject({ end: { seqNum: 3 } })
  await next.close()
})
