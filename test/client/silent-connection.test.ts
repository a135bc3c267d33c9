import { expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type AppendSession, open } from '../../src/index.ts'
import { outcomeOf } from '../support/index.ts'
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
