// @module-tag slow

import { describe, expect, it } from 'vitest'
import type * as EventSources from '../pages/event-source.ts'
import type * as Fetching from '../pages/fetch.ts'
import type * as PublishedClient from '../pages/published-client.ts'
import { inChromium, type Service, scriptIn, startService } from '../support.ts'

const BASIN = 'my-first-app'
const JSON_HEADERS = { 'svc-basin': BASIN, 'content-type': 'application/json' }

async function startWithStream(...bodies: string[]) {
  const service = await startService()
  await service.hw.createBasin(BASIN)
  const stream = service.hw.basin(BASIN).stream('s')
  await service.hw.basin(BASIN).createStream('s')
  if (bodies.length > 0) await stream.append(bodies)
  return { ...service, stream }
}

const ROOT_TOKEN = 'root-token-of-a-test'

/** Method, preflight headers and status of each exchange, in order. */
function summarize({ exchanges }: Service) {
  return exchanges.map(({ method, headers, status }) => [
    method,
    headers.get('access-control-request-method'),
    headers.get('access-control-request-headers'),
    status,
  ])
}

inChromium('the server and pages of another origin', (browser) => {
  describe('fetch', () => {
    const load = async () => scriptIn<typeof Fetching>(await browser.page(), 'fetch')

    it('sends a preflight without a token, then the headers of the protocol', async () => {
      const service = await startService({ auth: 'token' })
      await service.hw.setRootToken(ROOT_TOKEN)
      const { send } = await load()
      const call = {
        method: 'PUT',
        url: `${service.url}/v1/basins/${BASIN}`,
        headers: { authorization: `Bearer ${ROOT_TOKEN}`, 'svc-request-token': 'once' },
      }
      const created = await send(call)
      expect(created).toMatchObject({ status: 201, type: 'cors', provisionResult: 'created' })
      expect(summarize(service)).toEqual([
        ['OPTIONS', 'PUT', 'authorization,svc-request-token', 204],
        ['PUT', null, null, 201],
      ])
      const [preflight, put] = service.exchanges
      expect(preflight!.headers.has('authorization')).toBe(false)
      expect(put!.headers.get('authorization')).toBe(`Bearer ${ROOT_TOKEN}`)
      expect(put!.headers.get('origin')).toBe(browser.origin)
      expect(await send({ ...call, headers: {} })).toMatchObject({
        status: 401,
        body: expect.stringContaining('authn'),
      })
    })

    it.each(['svc', 's2'])('appends and reads with all headers of the prefix %s', async (prefix) => {
      const service = await startWithStream()
      const { send } = await load()
      const url = `${service.url}/v1/streams/s/records`
      const headers = { [`${prefix}-basin`]: BASIN, [`${prefix}-format`]: 'base64' }
      const body = btoa(String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte)))
      const appended = await send({
        url,
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', [`${prefix}-stream-config`]: '{}' },
        body: JSON.stringify({ records: [{ body }] }),
      })
      expect([appended.status, JSON.parse(appended.body).end.seq_num]).toEqual([200, 1])
      const read = await send({ url: `${url}?seq_num=0`, headers })
      expect([read.status, JSON.parse(read.body).records[0].body]).toEqual([200, body])
    })

    it('can read error responses', async () => {
      const service = await startWithStream('a')
      const { send } = await load()
      const url = `${service.url}/v1/streams/s/records`
      const post = (body: string) => ({ url, method: 'POST', headers: JSON_HEADERS, body })
      const codes = []
      for (const call of [
        post('{'),
        { url },
        { url: `${service.url}/v1/streams/none/records`, headers: JSON_HEADERS },
        { url, method: 'PATCH', headers: JSON_HEADERS },
        { url: `${service.url}/nowhere` },
        post('{"records":[{"body":"b"}],"match_seq_num":0}'),
        { url: `${url}?seq_num=9`, headers: JSON_HEADERS },
        { url: `${url}?seq_num=9`, headers: { ...JSON_HEADERS, accept: 'text/event-stream' } },
        post('{"records":[]}'),
        post(' '.repeat(8_000_000)),
      ]) {
        const { status, body } = await send(call)
        const { code, ...rest } = JSON.parse(body)
        codes.push([status, code ?? rest])
      }
      const tail = { seq_num: 1, timestamp: expect.any(Number) }
      expect(codes).toEqual([
        [400, 'bad_json'],
        [400, 'bad_header'],
        [404, 'stream_not_found'],
        [405, 'method_not_allowed'],
        [404, 'not_found'],
        [412, { seq_num_mismatch: 1 }],
        [416, { tail }],
        [416, { tail }],
        [422, 'invalid'],
        [400, 'bad_json'],
      ])
    })

    it('is rejected without authentication, unless its origin is allowed', async () => {
      const service = await startService({ auth: 'none' })
      const { refusal } = await load()
      expect(await refusal({ url: `${service.url}/v1/basins` })).toBe('TypeError')
      expect(service.exchanges.map(({ status }) => status)).toEqual([403])
    })
  })

  describe('EventSource', () => {
    const load = async () => scriptIn<typeof EventSources>(await browser.page(), 'event-source')

    async function listening(service: Service, query: string) {
      const { listen, events, states } = await load()
      await listen(`${service.urlOf(BASIN)}/v1/streams/s/records?${query}`)
      const receivedRecords = async () =>
        (await events()).map(({ type, id, data }) => {
          const { records } = type === 'batch' ? JSON.parse(data) : {}
          return [type, id, records?.map(({ body }: { body: string }) => body) ?? data]
        })
      const becomes = (expected: unknown) => expect.poll(receivedRecords).toEqual(expected)
      return { becomes, states }
    }

    it('receives live events, and resumes where it was after the connection is dropped', async () => {
      const service = await startWithStream('a', 'b')
      const { stream } = service
      const { becomes } = await listening(service, 'seq_num=0')
      const expected: unknown[] = [['batch', '1,2,18', ['a', 'b']]]
      await becomes(expected)
      for (const [body, id] of [
        ['c', '2,3,27'],
        ['é\u2028', '3,4,40'],
      ] as const) {
        await stream.append(body)
        expected.push(['batch', id, [body]])
        await becomes(expected)
      }
      await service.restart()
      await stream.append(['meanwhile', 'and more'])
      expected.push(['batch', '5,2,33', ['meanwhile', 'and more']])
      await becomes(expected)
      const [first, second] = service.exchanges.filter(({ method }) => method === 'GET')
      expect([first, second].map((exchange) => exchange?.headers.get('last-event-id'))).toEqual([
        null,
        '3,4,40',
      ])
      await stream.append('live again')
      expected.push(['batch', '6,3,51', ['live again']])
      await becomes(expected)
    })

    it('receives the end of a bounded session', async () => {
      const service = await startWithStream('a', 'b', 'c')
      const { becomes, states } = await listening(service, 'seq_num=1&count=2')
      await becomes([
        ['batch', '2,2,18', ['b', 'c']],
        ['message', '2,2,18', '[DONE]'],
      ])
      expect(await states()).toEqual([EVENT_SOURCE_CLOSED])
      await service.idle()
    })

    it('is closed by a 416', async () => {
      const service = await startWithStream('a')
      const { states } = await listening(service, 'seq_num=1&count=1')
      await expect.poll(states).toEqual([EVENT_SOURCE_CLOSED])
      expect(service.exchanges.map(({ status }) => status)).toEqual([416])
    })
  })

  describe('the published client', () => {
    const load = async () => scriptIn<typeof PublishedClient>(await browser.page(), 'published-client')

    it('creates a basin and a stream, appends, and follows live', async () => {
      const service = await startService()
      const { follow } = await load()
      expect(await follow(service.url, BASIN)).toEqual({ name: BASIN, end: 2, bodies: ['a', 'b', 'c', 'd'] })
      await service.idle()
    })

    it('preserves every byte', async () => {
      const service = await startService()
      const { everyByte } = await load()
      const bytes = Array.from({ length: 256 }, (_, byte) => byte)
      expect(await everyByte(service.url, BASIN)).toEqual({ end: 1, records: [bytes, bytes, bytes] })
      await service.idle()
    })

    it('recognizes the errors that it branches on', async () => {
      const service = await startService()
      const { errors } = await load()
      expect(await errors(service.url, BASIN)).toEqual({ expected: 1, tail: 1 })
    })
  })
})

const EVENT_SOURCE_CLOSED = 2
