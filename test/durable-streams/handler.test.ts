import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createDurableStreamsHandler } from '../../adapters/durable-streams/index.ts'
import { fenceRecord } from '../../src/index.ts'
import { BASIN, startService, statusesOf } from './support.ts'

const TEXT = { 'content-type': 'text/plain' }
const JSON_TYPE = { 'content-type': 'application/json' }

describe('a path', () => {
  it('is the name of a stream, slashes and percent-encoding included', async () => {
    const { hw, call } = await startService()
    expect((await call('PUT', 'chats/4%202/%C3%A9')).status).toBe(201)
    expect((await call('HEAD', 'chats%2F4%202/%C3%A9')).status).toBe(200)
    expect((await hw.basin(BASIN).listStreams()).items.map(({ name }) => name)).toEqual(['chats/4 2/é'])
  })

  it('may begin with the prefix of the handler where it is the source of a fork', async () => {
    const { with: withOptions } = await startService()
    const call = withOptions({ prefix: '/api' })
    await call('PUT', 's', { headers: TEXT, body: 'a' })
    const forks = ['/v1/stream/s', '/api/v1/stream/s', '/other/v1/stream/s'].map((path, index) =>
      call('PUT', `fork-${index}`, { headers: { 'stream-forked-from': path } }),
    )
    expect(await statusesOf(forks)).toEqual([201, 201, 400])
  })

  it('is rejected if it names no stream', async () => {
    const { call } = await startService()
    expect(await statusesOf(['', '%zz', '%00', 'x'.repeat(513)].map((name) => call('PUT', name)))).toEqual([
      404, 400, 400, 400,
    ])
    expect((await call('PUT', 'x'.repeat(512))).status).toBe(201)
    // Reserved for subscriptions, which this server does not have.
    expect(
      await statusesOf(['__ds', '__ds/subscriptions/a', '%5F_ds/a'].map((name) => call('PUT', name))),
    ).toEqual([404, 404, 404])
    expect((await call('PUT', '__dss')).status).toBe(201)
    const { status, headers } = await call('PATCH', 's')
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD, PUT, POST, DELETE'])
  })
})

describe('the wire protocol and the library', () => {
  it('append records that readers get as bytes', async () => {
    const { hw, call } = await startService()
    const stream = hw.basin(BASIN).stream('s')
    await stream.append(['one', { body: 'two', headers: [['h', 'x']] }])
    await stream.append(fenceRecord('token'))
    await stream.append('three')
    const response = await call('GET', 's')
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(response.headers.get('stream-next-offset')).toBe('0000000000000004_0000000000000000')
    expect(await response.text()).toBe('onetwothree')
    expect((await call('POST', 's', { headers: TEXT, body: 'x' })).status).toBe(409)
    const headers = { 'content-type': 'application/octet-stream' }
    expect((await call('POST', 's', { headers, body: 'four' })).status).toBe(204)
    expect((await stream.read({ tailOffset: 1 }).toArray())[0]?.body).toBe('four')
  })

  it('append records that readers of a JSON stream get as messages', async () => {
    const { hw, call } = await startService()
    await call('PUT', 's', { headers: JSON_TYPE, body: '[{"n": 1.0}, 2]' })
    const stream = hw.basin(BASIN).stream('s')
    await stream.append('{"n":3}')
    await stream.append('not JSON')
    expect((await stream.read().toArray()).map(({ body }) => body)).toEqual([
      '{"n": 1.0}',
      '2',
      '{"n":3}',
      'not JSON',
    ])
    expect(await (await call('GET', 's')).text()).toBe('[{"n": 1.0},2,{"n":3},"not JSON"]')
  })

  it('wake a long poll', async () => {
    const { hw, clock, call } = await startService()
    await call('PUT', 's', { headers: TEXT })
    const polled = call('GET', 's?offset=now&live=long-poll')
    await clock.settle()
    // A command alone is nothing to read.
    await hw.basin(BASIN).stream('s').append(fenceRecord('token'))
    await clock.settle()
    await hw.basin(BASIN).stream('s').append('native')
    const response = await polled
    expect([response.status, await response.text()]).toEqual([200, 'native'])
    expect(response.headers.get('stream-next-offset')).toBe('0000000000000002_0000000000000000')
  })
})

describe('a stream whose first records were removed', () => {
  it('is 410 at an offset below the first record, which it names, and begins there without one', async () => {
    const { hw, call } = await startService()
    await call('PUT', 's', { headers: TEXT, body: 'a' })
    for (const body of ['b', 'c']) await call('POST', 's', { headers: TEXT, body })
    await hw.basin(BASIN).stream('s').trim(2)
    const offset = '0000000000000001_0000000000000000'
    for (const live of ['', '&live=long-poll', '&live=sse']) {
      const response = await call('GET', `s?offset=${offset}${live}`)
      expect(response.status).toBe(410)
      expect((await response.json()).message).toContain('0000000000000002_0000000000000000')
    }
    expect(await (await call('GET', 's?offset=-1')).text()).toBe('c')
    expect(await (await call('GET', 's?offset=0000000000000002_0000000000000000')).text()).toBe('c')
  })

  it('is 410 if they have expired', async () => {
    const { hw, clock, call } = await startService()
    await hw.createBasin(BASIN)
    await hw.basin(BASIN).createStream('s', { retentionPolicy: { ageSeconds: 10 } })
    await hw.basin(BASIN).stream('s').append('a')
    await clock.advance(8_000)
    await hw.basin(BASIN).stream('s').append('b')
    await clock.advance(4_000)
    const offset = 'offset=0000000000000000_0000000000000000'
    const calls = ['', '&live=long-poll', '&live=sse'].map((live) => call('GET', `s?${offset}${live}`))
    expect(await statusesOf(calls)).toEqual([410, 410, 410])
    expect(await (await call('GET', 's')).text()).toBe('b')
  })
})

describe('a follower that falls behind a trim', () => {
  it('gets the end of the response, and 410 when it continues, instead of a silent gap', async () => {
    const { hw, clock, call } = await startService()
    await call('PUT', 's', { headers: TEXT })
    for (let n = 0; n < 20; n++) await call('POST', 's', { headers: TEXT, body: `${n};`.padEnd(500_000) })
    const response = await call('GET', 's?offset=-1&live=sse')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let received = (await reader.read()).value!
    await hw.basin(BASIN).stream('s').trim(19)
    // What is trimmed is freed after a while, during which open sessions may read on.
    await clock.advance(10 * 60_000)
    for (let part = await reader.read(); !part.done; part = await reader.read()) received += part.value
    const numbers = [...received.matchAll(/(\d+);/g)].map(([, n]) => Number(n))
    expect(numbers).toEqual(numbers.map((_, index) => index))
    expect(numbers.length).toBeLessThan(19)
    const next = [...received.matchAll(/"streamNextOffset":"(\w+)"/g)].at(-1)![1]!
    expect((await call('GET', `s?offset=${next}&live=sse`)).status).toBe(410)
  })
})

describe('stored content', () => {
  it.each([
    ['text/plain;charset=utf-8', null],
    ['application/json', null],
    ['image/png', null],
    ['text/html', 'attachment'],
    ['image/svg+xml', 'attachment'],
    ['application/xhtml+xml', 'attachment'],
    ['application/pdf', 'attachment'],
  ])('of type %s is no page on the origin of the app', async (type, disposition) => {
    const { call } = await startService()
    const headers = { 'content-type': type }
    expect((await call('PUT', 's', { headers, body: '["<script>"]' })).status).toBe(201)
    for (const query of ['', '?offset=-1&live=long-poll', '?offset=now']) {
      const response = await call('GET', `s${query}`)
      expect(response.headers.get('content-security-policy')).toBe('sandbox')
      expect(response.headers.get('content-disposition')).toBe(disposition)
    }
  })
})

describe('limits', () => {
  it.each(['PUT', 'POST'])(
    'reject a %s that is too large with 413, and store nothing of it',
    async (method) => {
      const { call } = await startService()
      const messages = (count: number) => JSON.stringify(Array.from({ length: count }, (_, index) => index))
      const send = (count: number) => call(method, 's', { headers: JSON_TYPE, body: messages(count) })
      if (method === 'POST') await call('PUT', 's', { headers: JSON_TYPE })
      const response = await send(16_001)
      expect([response.status, await response.json()]).toEqual([
        413,
        {
          code: 'too_large',
          message:
            "a request has at most 16000 messages and 16777216 bytes, and no more than the server's memory for " +
            'appends; divide it into several',
        },
      ])
      expect((await call('HEAD', 's')).status).toBe(method === 'PUT' ? 404 : 200)
      expect((await send(2_500)).status).toBe(method === 'PUT' ? 201 : 204)
      expect(await (await call('GET', 's')).json()).toHaveLength(1_000)
      expect((await call('HEAD', 's')).headers.get('stream-next-offset')).toContain('2500_')
    },
  )

  it('return long streams in parts that caches may keep, up to the tail', async () => {
    const { call } = await startService()
    await call('PUT', 's', { headers: TEXT })
    const body = 'x'.repeat(600_000)
    for (let count = 0; count < 3; count++) await call('POST', 's', { headers: TEXT, body })
    let text = ''
    let parts = 0
    for (let path = 's', isUpToDate = false; !isUpToDate; parts++) {
      const { headers, ...response } = await readText(await call('GET', path))
      isUpToDate = headers.get('stream-up-to-date') === 'true'
      expect(headers.get('cache-control')).toBe(
        isUpToDate ? 'no-cache' : 'public, max-age=60, stale-while-revalidate=300',
      )
      text += response.text
      path = `s?offset=${headers.get('stream-next-offset')}`
    }
    expect([parts, text.length]).toEqual([3, 1_800_000])
  })
})

async function readText(response: Response) {
  return { headers: response.headers, text: await response.text() }
}

describe('a creation', () => {
  it('is repeated with the same result, and conflicts with any other', async () => {
    const { call } = await startService()
    const headers = { ...TEXT, 'stream-ttl': '60' }
    expect((await call('PUT', 's', { headers, body: 'a' })).status).toBe(201)
    expect((await call('PUT', 's', { headers, body: 'b' })).status).toBe(200)
    expect(await (await call('GET', 's')).text()).toBe('a')
    const others = [
      { ...TEXT, 'stream-ttl': '61' },
      TEXT,
      { ...TEXT, 'stream-expires-at': '2027-01-01T00:00:00Z' },
      { ...JSON_TYPE, 'stream-ttl': '60' },
      { ...headers, 'stream-forked-from': '/v1/stream/s' },
    ]
    expect(await statusesOf(others.map((headers) => call('PUT', 's', { headers })))).toEqual([
      409, 409, 409, 409, 409,
    ])
  })
})

describe('errors', () => {
  it('are kept by no cache', async () => {
    const { call, with: withOptions } = await startService()
    await call('PUT', 's', { headers: TEXT })
    const responses = await Promise.all([
      call('GET', 'missing'),
      call('GET', 's?offset=x'),
      call('POST', 's', { headers: { ...TEXT, 'stream-seq': '' }, body: 'a' }),
      withOptions({ limits: { bodyBytes: 1 } })('POST', 's', { headers: TEXT, body: 'ab' }),
    ])
    expect(responses.map(({ status, headers }) => [status, headers.get('cache-control')])).toEqual([
      [404, 'no-store'],
      [400, 'no-store'],
      [400, 'no-store'],
      [413, 'no-store'],
    ])
  })
})

describe('events', () => {
  it('end with one that says that a stream is closed, and that nothing is missing', async () => {
    const { call } = await startService()
    await call('PUT', 's', { headers: { ...TEXT, 'stream-closed': 'true' }, body: 'a' })
    const end = { streamNextOffset: '0000000000000002_0000000000000000', upToDate: true, streamClosed: true }
    for (const offset of ['-1', 'now']) {
      const text = await (await call('GET', `s?offset=${offset}&live=sse`)).text()
      expect(text.endsWith(`event: control\ndata:${JSON.stringify(end)}\n\n`)).toBe(true)
    }
  })

  it.each([
    ['end after `sseMs`', 60_000, 0],
    ['leave no timer if the client leaves before', 120_000, 1],
    ['may last forever', Number.POSITIVE_INFINITY, 1],
  ])('%s', async (_, sseMs, open) => {
    const { hw, with: withOptions } = await startService()
    const call = withOptions({ sseMs })
    await call('PUT', 's', { headers: TEXT, body: 'a' })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const reader = (await call('GET', 's?offset=-1&live=sse')).body!.getReader()
    await reader.read()
    vi.advanceTimersByTime(60_000)
    expect(hw.stats().openSessions).toBe(open)
    await reader.cancel()
    expect([hw.stats().openSessions, vi.getTimerCount()]).toEqual([0, 0])
  })
})

describe('options', () => {
  it('are validated', async () => {
    const { hw } = await startService()
    const make = (options: object) => () => createDurableStreamsHandler(hw, options as never)
    expect(make({})).toThrow('`basin` is required')
    expect(make({ basin: 'X' })).toThrow('basin name')
    expect(make({ basin: BASIN, longPollMs: 60_001 })).toThrow('60000')
    expect(make({ basin: BASIN, sseMs: 0 })).toThrow('sseMs')
    expect(make({ basin: BASIN, page: {} })).toThrow('unknown member `page`')
    expect(() => createDurableStreamsHandler(undefined as never, { basin: BASIN })).toThrow('open engine')
  })
})

describe('a stream of an encrypted basin', () => {
  it('is created with a body and forked by requests that have its key', async () => {
    const { hw, call } = await startService()
    await hw.createBasin(BASIN, { streamCipher: 'aes-256-gcm' })
    const key = { 'svc-encryption-key': Buffer.alloc(32, 1).toString('base64') }
    const created = { headers: { ...TEXT, ...key }, body: 'one' }
    expect((await call('PUT', 's', { headers: TEXT, body: 'one' })).status).toBe(400)
    expect((await call('PUT', 's', created)).status).toBe(201)
    const forked = { 'stream-forked-from': '/v1/stream/s' }
    expect((await call('PUT', 'fork', { headers: forked })).status).toBe(400)
    expect((await call('PUT', 'fork', { headers: { ...forked, ...key } })).status).toBe(201)
    expect(await (await call('GET', 'fork', { headers: key })).text()).toBe('one')
    expect((await call('GET', 'fork')).status).toBe(400)
  })
})
