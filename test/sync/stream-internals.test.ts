import { expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyHandler, virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { codeOf, outcomeOf } from '../support/engine.ts'

async function opened() {
  const clock = virtualClock()
  const hw = await open({ storage: memory(), clock })
  const network = faultyHandler(createHandler(hw, { auth: 'none' }), { clock })
  const client = await connect({ url: 'http://localhost', fetch: network, clock })
  onTestFinished(async () => {
    await client.close()
    await hw.close()
  })
  const stream = hw.basin('basin').stream('stream')
  return { hw, clock, network, stream, remote: client.basin('basin').stream('stream') }
}

it('a stream that is deleted and created again has another identity', async () => {
  const { stream } = await opened()
  expect(await outcomeOf(stream.identity())).toBe('stream_not_found')
  await stream.append('a')
  const first = await stream.identity()
  expect(await stream.identity()).toBe(first)
  await stream.delete()
  expect(await outcomeOf(stream.identity())).toBe('stream_not_found')
  await stream.append('a')
  expect(await stream.identity()).not.toBe(first)
})

it('streams of different storages have different identities', async () => {
  const [one, other] = [await opened(), await opened()]
  for (const { stream } of [one, other]) await stream.append('a')
  expect(await one.stream.identity()).not.toBe(await other.stream.identity())
})

it('the identity of a stream of a server is its address', async () => {
  const { remote } = await opened()
  expect(await remote.identity()).toBe('http://localhost/v1/basin/stream')
})

it('a sibling is in the same basin, and is created by appends only if that is asked for', async () => {
  const { stream, remote } = await opened()
  await stream.append('a')
  for (const one of [stream, remote]) {
    const strict = one.sibling('strict', { autoCreate: false })
    expect([strict.basinName, strict.name]).toEqual(['basin', 'strict'])
    expect(await outcomeOf(strict.append('x'))).toBe('stream_not_found')
  }
  const config = { timestamping: { mode: 'arrival' } } as const
  await stream.sibling('local', { config }).append('x')
  expect((await stream.sibling('local').config()).timestamping.mode).toBe('arrival')
})

it('a stream is restored in a basin that is created where an append would create it', async () => {
  const { stream, remote } = await opened()
  const restored = { start: { seqNum: 7, timestamp: 1 } }
  const strict = stream.sibling('strict', { autoCreate: false })
  expect(await outcomeOf(strict.restore(restored))).toBe('basin_not_found')
  await stream.restore(restored)
  expect(await stream.checkTail()).toEqual({ seqNum: 7, timestamp: 1 })
  expect(await outcomeOf(stream.restore(restored))).toBe('resource_already_exists')
  expect(await outcomeOf(remote.restore(restored))).toBe('unsupported')
})

it('a read of a client without retries reports the first failure', async () => {
  const { stream, remote, network } = await opened()
  await stream.append('a')
  const query = { seqNum: 0, waitMs: Number.POSITIVE_INFINITY }
  const cursor = await remote.openCursor(query, { retry: false })
  expect((await cursor!.next())?.kind).toBe('batch')
  cursor!.close()
  network.refuse({ nth: 1 })
  const failure = await remote.openCursor(query, { retry: false }).catch(codeOf)
  expect(failure).toBe('unavailable')
})

it('a read of a client without retries ends with its token, even if there is another one', async () => {
  const { hw, clock, stream } = await opened()
  await stream.append('a')
  const scope = { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['read'] } as const
  const tokens = [
    await hw.issueAccessToken({ id: 'first', scope }),
    await hw.issueAccessToken({ id: 'second', scope }),
  ]
  const fetch = createHandler(hw, { auth: 'token' })
  const client = await connect({ url: 'http://localhost', fetch, clock, getToken: () => tokens.shift()! })
  const remote = client.basin('basin').stream('stream')
  const query = { seqNum: 0, waitMs: Number.POSITIVE_INFINITY }
  const cursor = await remote.openCursor(query, { retry: false })
  await cursor!.next()
  const next = Promise.resolve(cursor!.next()).then(String, codeOf)
  await hw.revokeAccessToken('first')
  expect(await next).toBe('authn')
  const again = await remote.openCursor(query, { retry: false })
  expect((await again!.next())?.kind).toBe('batch')
  again!.close()
  await client.close()
})
