import { createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type AppendSession, open } from '../../src/index.ts'
import { outcomeOf } from '../support/index.ts'
import { listening } from '../support/listening.ts'
import { startRelay } from '../support/relay.ts'

/** A client behind a relay. Only the client's timers are virtual. */
async function connectThroughRelay(requestTimeoutMs = 30_000) {
  const hw = await open({ storage: memory() })
  const server = await serve(hw, { port: 0, auth: 'none' })
  const relay = await startRelay(() => server.port)
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
  relay.silence()
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
  relay.silence()
  const outcome = outcomeOf(appended(session, 'two'))
  const timePasses = setInterval(() => void clock.advance('100ms'), 1)
  onTestFinished(() => clearInterval(timePasses))
  expect(await outcome).toBe('unavailable')
  // What follows uses real sockets, for which a virtual clock does not wait.
  clearInterval(timePasses)
  const next = await remote.appendSession()
  expect(await appended(next, 'three')).toMatchObject({ end: { seqNum: 3 } })
  await next.close()
})

const SETTINGS = Buffer.from('000000040000000000', 'hex')
const PING = Buffer.from('0000080600000000000000000000000000', 'hex')
const PING_ANSWER = Buffer.from('0000080601', 'hex').toString('latin1')

it('a connection on which data arrives is kept, although its answer takes long', async () => {
  const connections: { readonly socket: Socket; chunks: Buffer[] }[] = []
  const url = await listening(
    createServer((socket) => {
      const connection = { socket, chunks: [] as Buffer[] }
      connections.push(connection)
      socket.on('error', () => {})
      socket.on('data', (chunk) => connection.chunks.push(chunk))
      socket.write(SETTINGS)
    }),
  )
  const clock = virtualClock()
  const remote = await connect({ url, clock, random: () => 0.5 })
  const following = outcomeOf(remote.basin('basin').stream('stream').follow().toArray())
  onTestFinished(async () => {
    await remote.close()
    for (const { socket } of connections) socket.destroy()
    await following
  })
  await vi.waitFor(() => expect(connections[0]?.chunks).not.toHaveLength(0))
  await vi.waitFor(() => expect(clock.pending).toBeGreaterThan(0))
  await clock.advance('30s')
  const { socket, chunks } = connections[0]!
  const answers = () => Buffer.concat(chunks).toString('latin1').split(PING_ANSWER).length - 1
  for (let i = 0; i < 3; i++) {
    socket.write(PING)
    await vi.waitFor(() => expect(answers()).toBe(i + 1))
    await clock.advance('10s')
    expect(socket.readyState).toBe('open')
  }
  await clock.advance('10s')
  await vi.waitFor(() => expect(socket.readyState).not.toBe('open'))
})
