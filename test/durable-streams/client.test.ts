// @module-tag slow

import { DurableStream, IdempotentProducer, stream as readStream } from '@durable-streams/client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createDurableStreamsHandler } from '../../adapters/durable-streams/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { type Engine, open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { BASIN } from './support.ts'

interface Target {
  readonly hw: Engine
  readonly url: (name: string) => string
  readonly fetch: typeof globalThis.fetch
}

async function openEngine(): Promise<Engine> {
  const hw = await open({ storage: testStorage() })
  onTestFinished(() => hw.close())
  return hw
}

async function overSocket(): Promise<Target> {
  const hw = await openEngine()
  const server = await serve(hw, { auth: 'none', durableStreams: { basin: BASIN, longPollMs: 1_000 } })
  onTestFinished(() => server.close())
  return { hw, url: (name) => `${server.url}/v1/stream/${name}`, fetch: globalThis.fetch }
}

async function withoutSocket(): Promise<Target> {
  const hw = await openEngine()
  const handler = createDurableStreamsHandler(hw, { basin: BASIN, auth: 'none', longPollMs: 1_000 })
  const fetch: typeof globalThis.fetch = (input, init) => handler(new Request(input, init))
  return { hw, url: (name) => `http://localhost/v1/stream/${name}`, fetch }
}

describe.each([
  ['over a socket', overSocket],
  ['over the handler without a socket', withoutSocket],
])('the published client %s', (_, start) => {
  it('appends messages that it reads again, and that the library reads', async () => {
    const { hw, url, fetch } = await start()
    const contentType = 'application/json'
    const handle = await DurableStream.create({ url: url('chats/1'), contentType, fetch })
    for (let n = 0; n < 20; n++) await handle.append(JSON.stringify({ n }))
    const expected = Array.from({ length: 20 }, (_, n) => ({ n }))
    const response = await handle.stream<{ n: number }>({ live: false })
    expect(await response.json()).toEqual(expected)
    const records = await hw.basin(BASIN).stream('chats/1').read().toArray()
    expect(records.map(({ body }) => JSON.parse(body))).toEqual(expected)
    expect(await handle.head()).toMatchObject({ exists: true, contentType, streamClosed: false })
  })

  it.each(['long-poll', 'sse'] as const)('follows by %s what each protocol appends', async (live) => {
    const { hw, url, fetch } = await start()
    const contentType = 'application/json'
    const handle = await DurableStream.create({ url: url('s'), contentType, fetch })
    const abort = new AbortController()
    const response = await readStream<{ n: number }>({
      url: url('s'),
      fetch,
      live,
      offset: '-1',
      signal: abort.signal,
    })
    const seen: number[] = []
    const all = new Promise<void>((resolve) => {
      response.subscribeJson<{ n: number }>(async ({ items }) => {
        for (const { n } of items) seen.push(n)
        if (seen.length === 30) resolve()
      })
    })
    for (let n = 0; n < 30; n += 2) {
      await handle.append(JSON.stringify({ n }))
      await hw
        .basin(BASIN)
        .stream('s')
        .append(JSON.stringify({ n: n + 1 }))
    }
    await all
    abort.abort()
    expect(seen).toEqual(Array.from({ length: 30 }, (_, n) => n))
  })

  it('stores what a producer sends once, in order', async () => {
    const { hw, url, fetch } = await start()
    const handle = await DurableStream.create({ url: url('s'), contentType: 'application/json', fetch })
    // Each first response is lost, and the request is sent again.
    const statuses: number[] = []
    const lossy: typeof fetch = async (input, init) => {
      const [first, second] = [await fetch(input, init), await fetch(input, init)]
      statuses.push(first.status, second.status)
      return second
    }
    const producer = new IdempotentProducer(handle, 'worker', { fetch: lossy, lingerMs: 0, maxInFlight: 1 })
    for (let n = 0; n < 12; n++) {
      producer.append(JSON.stringify({ n }))
      await producer.flush()
    }
    await producer.detach()
    const records = await hw.basin(BASIN).stream('s').read().toArray()
    expect(records.map(({ body }) => JSON.parse(body).n)).toEqual(Array.from({ length: 12 }, (_, n) => n))
    expect(statuses).toEqual(Array.from({ length: 24 }, (_, index) => (index % 2 === 0 ? 200 : 204)))
  })
})
