import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'

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

it('a follower and new reads recover from a connection that has gone silent', async () => {
  const hw = await open({ storage: memory() })
  const server = await serve(hw, { port: 0, auth: 'none' })
  const relay = await startRelay(Number(new URL(server.url).port))
  // Only the client's timers are virtual.
  const clock = virtualClock()
  const remote = await connect({ url: relay.url, clock, random: () => 0.5 })
  onTestFinished(async () => {
    await remote.close()
    await server.close({ graceMs: 0 })
    await hw.close()
  })
  const stream = hw.basin('basin').stream('stream')
  await stream.append('before')
  const seen: string[] = []
  const subscription = remote
    .basin('basin')
    .stream('stream')
    .follow({ seqNum: 0 })
    .records$.subscribe(({ body }) => seen.push(body))
  await vi.waitFor(() => expect(seen).toEqual(['before']))
  const before = relay.connections()
  relay.swallow()
  await stream.append('after')
  await vi.waitFor(async () => {
    await clock.advance('1s')
    expect(seen).toEqual(['before', 'after'])
  })
  expect(relay.connections()).toBeGreaterThan(before)
  const known = relay.connections()
  const again = await remote.basin('basin').stream('stream').follow({ seqNum: 0 }).records$
  const first = await new Promise<string>((resolve) => {
    const one = again.subscribe(({ body }) => {
      resolve(body)
      one.unsubscribe()
    })
  })
  expect(first).toBe('before')
  expect(relay.connections()).toBe(known)
  subscription.unsubscribe()
})
