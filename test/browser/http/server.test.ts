// @module-tag slow

import { expect, it } from 'vitest'
import type * as EventSources from '../pages/event-source.ts'
import type * as Fetching from '../pages/fetch.ts'
import type * as PublishedClient from '../pages/published-client.ts'
import { inChromium, scriptIn, startService } from '../support.ts'

const BASIN = 'my-first-app'
const ROOT_TOKEN = 'root-token-of-a-test'

async function startWithStream(...bodies: string[]) {
  const service = await startService()
  await service.hw.createBasin(BASIN)
  await service.hw.basin(BASIN).createStream('s')
  const stream = service.hw.basin(BASIN).stream('s')
  await stream.append(bodies)
  return { ...service, stream }
}

inChromium('the server and pages of another origin', (browser) => {
  const load = async () => scriptIn<typeof Fetching>(await browser.page(), 'fetch')

  it('sends a preflight without a token, then the headers of the protocol', async () => {
    const service = await startService({ auth: 'token' })
    await service.hw.setRootToken(ROOT_TOKEN)
    const { send } = await load()
    const created = await send({
      method: 'PUT',
      url: `${service.url}/v1/basins/${BASIN}`,
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, 'svc-request-token': 'once' },
    })
    expect(created).toMatchObject({ status: 201, type: 'cors', provisionResult: 'created' })
    const [preflight, put] = service.exchanges
    expect([preflight!.method, preflight!.status, put!.method]).toEqual(['OPTIONS', 204, 'PUT'])
    expect(preflight!.headers.get('access-control-request-headers')).toBe('authorization,svc-request-token')
    expect(preflight!.headers.has('authorization')).toBe(false)
  })

  it('lets the page read error responses', async () => {
    const service = await startWithStream('a')
    const { send } = await load()
    const url = `${service.url}/v1/streams/s/records`
    const headers = { 'svc-basin': BASIN, 'content-type': 'application/json' }
    const answers = [
      await send({ url, method: 'POST', headers, body: '{' }),
      await send({ url: `${url}?seq_num=9`, headers }),
      await send({ url, method: 'POST', headers, body: '{"records":[{"body":"b"}],"match_seq_num":0}' }),
    ]
    expect(answers.map(({ status, body }) => [status, JSON.parse(body)])).toEqual([
      [400, expect.objectContaining({ code: 'bad_json' })],
      [416, { tail: { seq_num: 1, timestamp: expect.any(Number) } }],
      [412, { seq_num_mismatch: 1 }],
    ])
  })

  it('is rejected without authentication, unless its origin is allowed', async () => {
    const service = await startService({ auth: 'none' })
    const { refusal } = await load()
    expect(await refusal({ url: `${service.url}/v1/basins` })).toBe('TypeError')
    expect(service.exchanges.map(({ status }) => status)).toEqual([403])
  })

  it('EventSource receives live events, and resumes after the connection is dropped', async () => {
    const service = await startWithStream('a', 'b')
    const page = await browser.page()
    const { listen, bodies, lastId } = await scriptIn<typeof EventSources>(page, 'event-source')
    await listen(`${service.urlOf(BASIN)}/v1/streams/s/records?seq_num=0`)
    await expect.poll(bodies).toEqual(['a', 'b'])
    await service.stream.append('é\u2028')
    await expect.poll(bodies).toEqual(['a', 'b', 'é\u2028'])
    const id = await lastId()
    await service.restart()
    await service.stream.append(['meanwhile', 'and more'])
    await expect.poll(bodies).toEqual(['a', 'b', 'é\u2028', 'meanwhile', 'and more'])
    const requests = service.exchanges.filter(({ method }) => method === 'GET')
    expect(requests.at(-1)!.headers.get('last-event-id')).toBe(id)
    await page.close()
    await service.idle()
  })

  it('EventSource loses nothing if the connection is dropped before the first batch', async () => {
    const service = await startWithStream('before')
    const page = await browser.page()
    const { listen, bodies } = await scriptIn<typeof EventSources>(page, 'event-source')
    await listen(`${service.urlOf(BASIN)}/v1/streams/s/records`)
    await expect.poll(() => service.hw.stats().waitingReads).toBe(1)
    await service.restart()
    await service.stream.append(['meanwhile', 'and more'])
    await expect.poll(bodies).toEqual(['meanwhile', 'and more'])
    await page.close()
    await service.idle()
  })

  it('serves the published client', async () => {
    const service = await startService()
    const script = await scriptIn<typeof PublishedClient>(await browser.page(), 'published-client')
    expect(await script.follow(service.url, BASIN)).toEqual({ end: 2, bodies: ['a', 'b', 'c', 'd'] })
    expect(await script.errors(service.url, 'basin-of-errors')).toEqual({ expected: 1, tail: 1 })
    await service.idle()
  })
})
