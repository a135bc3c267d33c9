// @module-tag slow

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { FrameDecoder } from '../../../src/wire/frame.ts'
import { AppendAckSchema, AppendInputSchema, ReadBatchSchema } from '../../../src/wire/gen/records_pb.ts'
import { frameMessage, messageOf } from '../../../src/wire/session-frames.ts'
import type * as Leaving from '../pages/disconnects.ts'
import type * as EventSources from '../pages/event-source.ts'
import type * as Fetching from '../pages/fetch.ts'
import type * as PublishedClient from '../pages/published-client.ts'
import type * as Controlled from '../pages/service-worker-client.ts'
import { serviceWorkersOf } from '../service-workers.ts'
import { inChromium, scriptIn } from '../support.ts'

const BASIN = 'my-first-app'
const KEY = btoa('k'.repeat(32))

inChromium('the HTTP handler in a service worker', (browser) => {
  async function controlledPage() {
    const page = await browser.page()
    const { control, stats, rootToken } = await scriptIn<typeof Controlled>(page, 'service-worker-client')
    await control()
    const { send } = await scriptIn<typeof Fetching>(page, 'fetch')
    /** Sends a request with an optional JSON body and returns status and JSON body of the response. */
    async function call(method: string, path: string, json?: unknown, headers: Record<string, string> = {}) {
      const body = json === undefined ? {} : { body: JSON.stringify(json) }
      const url = `${browser.origin}${path}`
      const answer = await send({
        method,
        url,
        ...body,
        headers: { 'content-type': 'application/json', ...headers },
      })
      return { status: answer.status, body: answer.body === '' ? undefined : JSON.parse(answer.body) }
    }
    const idle = () => expect.poll(stats).toMatchObject({ openReads: 0, waitingReads: 0, pendingAppends: 0 })
    return { page, call, stats, idle, rootToken }
  }
  type ControlledPage = Awaited<ReturnType<typeof controlledPage>>

  let streams = 0
  /** A new stream for each test, because the tests share a browser and its storage. */
  async function newStream({ call }: ControlledPage) {
    await call('PUT', `/open/v1/basins/${BASIN}`)
    const path = `/open/v1/streams/s${++streams}`
    expect((await call('PUT', path)).status).toBe(201)
    const append = (...bodies: string[]) =>
      call('POST', `${path}/records`, { records: bodies.map((body) => ({ body })) })
    return { path: `${path}/records`, records: `${browser.origin}${path}/records`, append }
  }

  it('serves the published client', async () => {
    const { page, idle } = await controlledPage()
    const { follow, everyByte, errors } = await scriptIn<typeof PublishedClient>(page, 'published-client')
    const address = `${browser.origin}/open/v1`
    const bytes = Array.from({ length: 256 }, (_, byte) => byte)
    expect(await follow(address, 'followed')).toEqual({
      name: 'followed',
      end: 2,
      bodies: ['a', 'b', 'c', 'd'],
    })
    expect(await everyByte(address, 'every-byte')).toEqual({ end: 1, records: [bytes, bytes, bytes] })
    expect(await errors(address, 'with-errors')).toEqual({ expected: 1, tail: 1 })
    await idle()
  })

  it('serves EventSource, and again after the browser stopped the service worker', async () => {
    const controlled = await controlledPage()
    const { records, append } = await newStream(controlled)
    await append('a', 'b')
    const following = async ({ page }: ControlledPage, from: number) => {
      const { listen, events } = await scriptIn<typeof EventSources>(page, 'event-source')
      await listen(`${records}?seq_num=${from}`)
      const receivedRecords = async () => (await events()).flatMap(({ data }) => JSON.parse(data).records)
      return (...bodies: string[]) =>
        expect.poll(receivedRecords).toMatchObject(bodies.map((body, i) => ({ seq_num: from + i, body })))
    }
    const shows = await following(controlled, 0)
    await shows('a', 'b')
    await append('c')
    await shows('a', 'b', 'c')
    await (await serviceWorkersOf(controlled.page)).stop()
    const afterwards = await following(await controlledPage(), 3)
    await append('d')
    await afterwards('d')
    await append('e')
    await afterwards('d', 'e')
  })

  it('serves binary sessions', async () => {
    const controlled = await controlledPage()
    const { path } = await newStream(controlled)
    const records = [{ body: new TextEncoder().encode('a') }, { body: new TextEncoder().encode('b') }]
    const input = await frameMessage(
      toBinary(AppendInputSchema, create(AppendInputSchema, { records })),
      undefined,
    )
    const session = async (query: string, init: { readonly method: string; readonly body?: number[] }) => {
      const bytes = await controlled.page.evaluate(inSession, { url: `${path}${query}`, ...init })
      const [frame] = new FrameDecoder().decode(Uint8Array.from(bytes))
      if (frame?.kind !== 'message') throw new Error('no message')
      return messageOf(frame)
    }
    const ack = fromBinary(AppendAckSchema, await session('', { method: 'POST', body: [...input] }))
    expect(Number(ack.end?.seqNum)).toBe(2)
    const batch = fromBinary(ReadBatchSchema, await session('?seq_num=0&count=2', { method: 'GET' }))
    expect(batch.records.map(({ body }) => new TextDecoder().decode(body))).toEqual(['a', 'b'])
  })

  const ways: readonly [name: string, leave: (page: Page) => Promise<unknown>][] = [
    ['navigates away', (page) => page.goto('about:blank')],
    ['is reloaded', (page) => page.reload()],
    ['is closed', (page) => page.close()],
  ]
  it.each(ways)('leaves nothing open when a page %s', async (_, leave) => {
    const [observer, follower] = [await controlledPage(), await controlledPage()]
    const { records, append } = await newStream(observer)
    await append('a')
    const { follow } = await scriptIn<typeof Leaving>(follower.page, 'disconnects')
    await follow(records)
    await expect.poll(observer.stats).toMatchObject({ openReads: 2, waitingReads: 2 })
    await leave(follower.page)
    await observer.idle()
  })

  it('leaves nothing open when a page stops following', async () => {
    const controlled = await controlledPage()
    const { records, append } = await newStream(controlled)
    await append('a')
    const { follow, stopFollowing } = await scriptIn<typeof Leaving>(controlled.page, 'disconnects')
    await follow(records)
    await expect.poll(controlled.stats).toMatchObject({ openReads: 2, waitingReads: 2 })
    await stopFollowing()
    await controlled.idle()
  })

  it('includes tokens, ciphers and metrics', async () => {
    const { call, rootToken } = await controlledPage()
    const authorization = `Bearer ${await rootToken()}`
    expect(await call('GET', '/guarded/v1/basins')).toMatchObject({ status: 401, body: { code: 'authn' } })
    const config = { stream_cipher: 'aes-256-gcm' }
    const as = (method: string, path: string, json?: unknown, headers = {}) =>
      call(method, `/guarded/v1${path}`, json, { authorization, 'svc-basin': 'top-secret', ...headers })
    expect(await as('PUT', '/basins/top-secret', { config })).toMatchObject({ status: 201 })
    expect(await as('PUT', '/streams/s')).toMatchObject({ status: 201 })
    const key = { 'svc-encryption-key': KEY }
    const records = [{ body: 'secret' }]
    expect(await as('POST', '/streams/s/records', { records }, key)).toMatchObject({ status: 200 })
    const read = (headers: object) => as('GET', '/streams/s/records?seq_num=0', undefined, headers)
    expect(await read(key)).toMatchObject({ status: 200, body: { records } })
    expect(await read({})).toMatchObject({ status: 400, body: { code: 'bad_header' } })
    const now = Math.floor(Date.now() / 1000)
    const query = `set=basin-ops&start=${now - 3600}&end=${now}&interval=hour`
    expect(await as('GET', `/metrics/top-secret?${query}`)).toMatchObject({ status: 200 })
  })

  it('ignores navigations, requests of markup and other paths', async () => {
    const { page, call } = await controlledPage()
    expect((await call('GET', '/open/v1/basins')).status).toBe(200)
    const fetched = await page.evaluate(async () => (await fetch('/open/v2/basins')).text())
    expect(fetched).toContain('/open/v2/basins does not exist')
    const embedded = page.waitForResponse((response) => response.url().includes('/open/v1/basins?'))
    await page.evaluate(() => {
      const link = document.createElement('link')
      document.head.append(Object.assign(link, { rel: 'modulepreload', href: '/open/v1/basins?as=script' }))
    })
    expect((await embedded).fromServiceWorker()).toBe(false)
    const navigated = await page.goto(`${browser.origin}/open/v1/basins`)
    expect([navigated?.fromServiceWorker(), await navigated?.text()]).toEqual([
      false,
      expect.stringContaining('/open/v1/basins does not exist'),
    ])
  })
})

/** Runs in the page: sends the complete input of a session and resolves to its output. */
async function inSession({ url, method, body }: { url: string; method: string; body?: number[] }) {
  const headers = { 'content-type': 'svcs/proto' }
  const response = await fetch(url, {
    method,
    headers,
    body: body === undefined ? null : Uint8Array.from(body),
  })
  return [...new Uint8Array(await response.arrayBuffer())]
}
