import { describe, expect, it, onTestFinished, test } from 'vitest'
import { createDurableStreamsHandler } from '../../adapters/durable-streams/index.ts'
import type { AccessTokenInput } from '../../src/index.ts'
import { BASIN, RECORDS, startService, startWithStream } from './support.ts'

interface Follower {
  readonly basin: string
  readonly stream: string
  readonly next_seq_num: number
  readonly behind: number
}

interface Followers {
  readonly followers: readonly Follower[]
  readonly has_more: boolean
}

test('lists the open read sessions with their distance from the tail', async () => {
  const { call, clock } = await startWithStream()
  // Each fills a batch of a session, of which a client that does not read receives only the first ones.
  const body = 'x'.repeat(600_000)
  for (let count = 0; count < 8; count++) await call('POST', RECORDS, { json: { records: [{ body }] } })
  const list = async (query = ''): Promise<Followers> => (await call('GET', `/followers${query}`)).json()
  expect(await list()).toEqual({ followers: [], has_more: false })

  const events = await call('GET', `${RECORDS}?seq_num=1`, {
    headers: { accept: 'text/event-stream', 'user-agent': 'a-browser' },
  })
  const frames = await call('GET', `${RECORDS}?seq_num=8`, {
    headers: { 'content-type': 's2s/proto' },
  })
  await clock.settle()
  const [slow, quick] = (await list()).followers as [Follower, Follower]
  const common = { basin: BASIN, stream: 's', since: expect.any(String) }
  expect(slow).toMatchObject({ ...common, protocol: 'events', client: 'a-browser' })
  expect(slow.behind).toBeGreaterThan(0)
  expect(slow.next_seq_num + slow.behind).toBe(8)
  expect(quick).toEqual({ ...common, protocol: 'frames', next_seq_num: 8, behind: 0 })
  expect((await list(`?basin=${BASIN}&stream=other`)).followers).toEqual([])
  expect((await list(`?basin=${BASIN}&stream=s`)).followers).toHaveLength(2)

  await frames.body!.cancel()
  await events.body!.cancel()
  await expect.poll(async () => (await list()).followers).toEqual([])
})

test('lists the followers of other handlers of the engine, by Durable Streams too', async () => {
  const { hw, call, clock } = await startWithStream()
  const handler = createDurableStreamsHandler(hw, { basin: BASIN, auth: 'none' })
  const url = 'http://localhost/v1/stream/s?offset=now&live=sse'
  const { body } = await handler(new Request(url, { headers: { 'user-agent': 'a-page' } }))
  await clock.settle()
  const list = async (): Promise<Followers> => (await call('GET', '/followers')).json()
  expect((await list()).followers).toEqual([
    {
      basin: BASIN,
      stream: 's',
      protocol: 'durable-streams',
      client: 'a-page',
      since: expect.any(String),
      next_seq_num: 0,
      behind: 0,
    },
  ])
  await body!.cancel()
  await expect.poll(async () => (await list()).followers).toEqual([])
})

describe('the scope of the token', () => {
  const OTHER_BASIN = 'other-basin'
  const ALL = { prefix: '' }
  const [S, T, U] = [`${BASIN} tenant-7/s`, `${BASIN} tenant-8/s`, `${OTHER_BASIN} tenant-7/s`]

  /** Follows a stream of each of two tenants, and one of another basin. */
  async function follow() {
    const { hw, call } = await startService({ auth: 'token' })
    const root = await hw.createRootToken()
    const send = (path: string, token: string | undefined, basin?: string) => {
      const headers = { accept: 'text/event-stream', ...(token && { authorization: `Bearer ${token}` }) }
      return call('GET', path, { headers, ...(basin !== undefined && { basin }) })
    }
    const streams = [S, T, U].map((name) => name.split(' ') as [string, string])
    for (const [basin, stream] of streams) {
      await hw.ensureBasin(basin)
      await hw.basin(basin).createStream(stream)
      const path = RECORDS.replace('/s/', `/${encodeURIComponent(stream)}/`)
      const session = await send(path, root, basin)
      onTestFinished(() => session.body!.cancel())
    }
    const list = async (path: string, scope: Partial<AccessTokenInput>) => {
      const token = await hw.issueAccessToken({ id: 'observer', ...scope } as AccessTokenInput)
      return send(path, token)
    }
    return { list, send }
  }

  const ops = ['account-metrics'] as const
  const prefixed = { autoPrefixStreams: true, scope: { basins: ALL, streams: { prefix: 'tenant-7/' }, ops } }

  it.each<[scope: string, Partial<AccessTokenInput>, path: string, listed: string[]]>([
    ['everything', { scope: { basins: ALL, streams: ALL, ops } }, '/followers', [S, T, U]],
    ['one basin', { scope: { basins: { exact: BASIN }, streams: ALL, ops } }, '/followers', [S, T]],
    ['one stream', { scope: { basins: ALL, streams: { exact: 'tenant-8/s' }, ops } }, '/followers', [T]],
    ['no basins', { scope: { streams: ALL, ops } }, '/followers', []],
    ['no streams', { scope: { basins: ALL, ops } }, '/followers', []],
    ['an automatic prefix', prefixed, '/followers', [`${BASIN} s`, `${OTHER_BASIN} s`]],
    ['an automatic prefix', prefixed, `/followers?basin=${BASIN}&stream=s`, [`${BASIN} s`]],
  ])('limits what is listed: %s', async (_scope, token, path, expected) => {
    const { list } = await follow()
    const { followers } = (await (await list(path, token)).json()) as Followers
    expect(followers.map(({ basin, stream }) => `${basin} ${stream}`).sort()).toEqual(expected.sort())
  })

  it('does not replace the permission to see metrics', async () => {
    const { list, send } = await follow()
    const reader = { scope: { basins: ALL, streams: ALL, ops: ['read', 'list-streams'] } } as const
    expect((await list('/followers', reader)).status).toBe(403)
    expect((await send('/followers', undefined)).status).toBe(401)
  })
})
