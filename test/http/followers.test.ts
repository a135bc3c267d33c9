import { expect, test } from 'vitest'
import { createDurableStreamsHandler } from '../../adapters/durable-streams/index.ts'
import { BASIN, RECORDS, startService, startWithStream } from './support.ts'

interface Follower {
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

test('names the stream of a token with a prefix in full, to callers that may see the metrics', async () => {
  const { hw, call } = await startService({ auth: 'token' })
  await hw.createBasin(BASIN)
  await hw.basin(BASIN).createStream('tenant-7/s')
  const scope = { basins: { exact: BASIN }, streams: { prefix: 'tenant-7/' } } as const
  const token = await hw.issueAccessToken({
    id: 'tenant',
    autoPrefixStreams: true,
    scope: { ...scope, ops: ['read'] },
  })
  const send = (path: string, bearer: string | undefined, accept = 'application/json') =>
    call('GET', path, { headers: { accept, ...(bearer && { authorization: `Bearer ${bearer}` }) } })
  const session = await send(RECORDS, token, 'text/event-stream')
  expect(session.status).toBe(200)
  const observer = await hw.issueAccessToken({ id: 'observer', scope: { ops: ['account-metrics'] } })
  const { followers }: Followers = await (await send('/followers', observer)).json()
  expect(followers).toMatchObject([{ basin: BASIN, stream: 'tenant-7/s' }])
  expect((await send('/followers', token)).status).toBe(403)
  expect((await send('/followers', undefined)).status).toBe(401)
  await session.body!.cancel()
})
