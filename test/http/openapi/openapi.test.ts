// @module-tag slow

import { afterEach, describe, expect, test } from 'vitest'
import { ROUTES } from '../../../adapters/http/routes.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../../adapters/testing/index.ts'
import { open, systemClock } from '../../../src/index.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { closeRecord } from '../../../src/model/record.ts'
import type { CatalogChange } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { testClock } from '../../support/index.ts'
import { wrapped } from '../../support/wrapped-storage.ts'
import { REJECTED } from '../rejected-requests.ts'
import { FLOWS } from '../resource-flows.ts'
import { BASIN, bytesOf, RECORDS } from '../support.ts'
import { document, operations } from './contract.ts'
import {
  callerOf,
  expectStatuses,
  type Init,
  KEY,
  opened,
  problemsFound,
  type Row,
  sampleOf,
  unseen,
} from './provoke.ts'

afterEach(() => expect(problemsFound()).toEqual([]))

describe('the document', () => {
  test('has the paths and methods of the handler, and no others', () => {
    const served = ROUTES.flatMap(({ pattern, target }) =>
      Object.keys(target).map((method) => `${method.toLowerCase()} ${pattern}`),
    )
    const durable = ['get', 'head', 'put', 'post', 'delete'].map((method) => `${method} /v1/stream/{path}`)
    const written = operations.map(({ method, path }) => `${method} ${path}`)
    expect(written.sort()).toEqual([...served, ...durable, 'get /'].sort())
  })

  test('has nothing that it does not use', () => {
    const text = JSON.stringify(document)
    const { securitySchemes: _, ...components } = document.components
    const unused = Object.entries(components).flatMap(([kind, entries]) =>
      Object.keys(entries).filter((name) => !text.includes(`"#/components/${kind}/${name}"`)),
    )
    expect(unused).toEqual([])
  })

  test('is served as it is', async () => {
    await using hw = await opened()
    const response = await callerOf(hw)('GET', '/openapi.json')
    expect(await response.json()).toEqual(document)
  })
})

describe('each operation', () => {
  const secured = operations.filter(({ operation }) => operation.security === undefined)
  const limited = operations.filter(({ operation }) => operation.responses['429'] !== undefined)
  const scope = { basins: { prefix: '' }, streams: { prefix: '' } } as const

  /** Sends a sample of each operation, with something else. */
  async function expectEach(located: typeof operations, status: number, send: Send) {
    for (const one of located) {
      const [method, path, init] = sampleOf(one)
      const response = await send(method, path, init)
      expect([method, path, response.status]).toEqual([method, path, status])
    }
  }
  type Send = (method: string, path: string, init: Init) => Promise<Response>
  const withHeaders =
    (call: Send, more: Readonly<Record<string, string>>): Send =>
    (method, path, init) =>
      call(method, path, { ...init, headers: { ...init.headers, ...more } })

  test('needs a token with a permission', async () => {
    await using hw = await opened()
    const call = callerOf(hw, { auth: 'token' })
    await expectEach(secured, 401, call)
    const isListing = ({ operation }: (typeof secured)[number]) => operation.operationId === 'listLocations'
    for (const [ops, located] of [
      ['list-locations', secured.filter((one) => !isListing(one))],
      ['list-basins', secured.filter(isListing)],
    ] as const) {
      const token = await hw.issueAccessToken({ id: ops, scope: { ...scope, ops: [ops] } })
      await expectEach(located, 403, withHeaders(call, { authorization: `Bearer ${token}` }))
    }
  })

  test('has the status and headers of GET for HEAD, and no body', async () => {
    await using hw = await opened()
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    const { open } = callerOf(hw)
    // That of the second protocol is documented.
    const gets = operations.filter(({ method, path }) => method === 'get' && path !== '/v1/stream/{path}')
    const reading = (accept: string) => ['GET', `${RECORDS}?seq_num=0`, { headers: { accept } }] as const
    const forms = ['application/json', 'application/protobuf', 'text/event-stream'].map(reading)
    for (const [, path, init] of [
      ...gets.map(sampleOf),
      ...forms,
      ['GET', '/v1/basins/missing', {}] as const,
    ]) {
      const headers = { ...init.headers, 'accept-encoding': 'gzip' }
      const head = await open('HEAD', path, { headers })
      const get = await open('GET', path, { headers })
      const { 'content-length': length, ...others } = Object.fromEntries(head.headers)
      expect([path, head.status, others]).toEqual([path, get.status, Object.fromEntries(get.headers)])
      expect(await head.text()).toBe('')
      if (get.headers.get('content-type') === 'text/event-stream') await get.body!.cancel()
      // The counters of /metrics may differ by a digit or two from one response to the next.
      else
        expect(Math.abs(Number(length) - (await bytesOf(get)).length)).toBeLessThan(
          path === '/metrics' ? 20 : 1,
        )
    }
    expect(hw.stats()).toMatchObject({ openSessions: 0, openReads: 0 })
  })

  test('rejects an unknown content coding', async () => {
    await using hw = await opened()
    await expectEach(operations, 415, withHeaders(callerOf(hw), { 'content-encoding': 'br' }))
  })

  test('rejects a host that is not allowed', async () => {
    await using hw = await opened()
    const call = callerOf(hw, { allowedHosts: [] })
    await expectEach(operations, 421, (method, path, init) =>
      call(method, path, { ...init, origin: 'http://rebound.example' }),
    )
  })

  test('reports a storage that fails', async () => {
    const storage = faultyStorage(memory())
    await using hw = await opened({ storage })
    storage.fail('get')
    storage.fail('list')
    // The first lookup of a token reads the storage.
    let tokens = 0
    await expectEach(secured, 500, (method, path, init) => {
      const headers = { authorization: `Bearer unknown-${tokens++}` }
      return withHeaders(callerOf(hw, { auth: 'token' }), headers)(method, path, init)
    })
    storage.heal()
  })

  test('reports an engine that cannot be opened', async () => {
    const failing = () => Promise.reject(new HeadwaterError('storage', 'the directory is locked'))
    await expectEach(operations, 503, callerOf(failing))
  })

  test('is rejected if too many bodies are incomplete', async () => {
    await using hw = await opened()
    const call = callerOf(hw, { limits: { pendingBodyBytes: 2 * 1024 * 1024 } })
    const controllers: ReadableStreamDefaultController<Uint8Array>[] = []
    const stalled = () =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          controllers.push(controller)
          controller.enqueue(new Uint8Array(2 * 1024 * 1024))
        },
      })
    const isUpload = ({ operation }: (typeof limited)[number]) => operation.requestBody !== undefined
    const headers = { 'content-type': 'application/json' }
    // Each protocol has a handler of its own.
    const pending = ['/v1/streams/s', '/v1/stream/s'].map((path) =>
      call.open('PUT', path, { headers, body: stalled() }),
    )
    for (const located of limited.filter(isUpload)) {
      const [method, path, { json: _json, ...rest }] = sampleOf(located)
      const send = () =>
        call(method, path, { ...rest, headers: { ...headers, ...rest.headers }, body: oneByteMore() })
      await expect.poll(async () => (await send()).status).toBe(429)
    }
    for (const controller of controllers) controller.error(new Error('the client left'))
    await Promise.all(pending)
    // Those that came before the handler had read the first body.
    problemsFound()
  })

  test('is rejected if too many reads are open', async () => {
    await using hw = await opened({ limits: { openSessions: 1 } })
    const call = callerOf(hw)
    const following = await call.open('GET', RECORDS, { headers: { accept: 'text/event-stream' } })
    await expectEach(
      limited.filter(({ operation }) => operation.requestBody === undefined),
      429,
      call,
    )
    await following.body!.cancel()
  })
})

/** A body that is not complete when the handler reads it. */
function oneByteMore(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      controller.enqueue(new Uint8Array(1))
      await new Promise((resolve) => setImmediate(resolve))
      controller.close()
    },
  })
}

describe('the replies to', () => {
  // The others are to paths and methods that do not exist.
  const rejected = REJECTED.filter(
    ([, reply]) => !['404 not_found', '405 method_not_allowed'].includes(reply),
  )

  test('requests that are rejected', async () => {
    await using hw = await opened()
    const call = callerOf(hw)
    for (const [request, reply, title, { headers, body }] of rejected) {
      const [method, path] = request.split(' ') as [string, string]
      const { host = 'localhost', ...others } = headers
      const sent = typeof body === 'string' ? body : (body as Uint8Array<ArrayBuffer> | undefined)
      const init = { basin: null, origin: `http://${host}`, headers: others, ...(sent && { body: sent }) }
      const { status } = await call(method, path, init)
      expect([request, title, status]).toEqual([request, title, Number(reply.split(' ')[0])])
    }
  })

  test.each(Object.entries(FLOWS))('requests by which %s', async (_, steps) => {
    await using hw = await open({ storage: memory(), usage: usageMetrics(), clock: testClock() })
    const call = callerOf(hw)
    for (const [request, { headers, json, body }, status] of steps) {
      const [method, path] = request.split(' ') as [string, string]
      await expectStatuses(call, [[status, method, path, { headers, json, body } as Init]])
    }
    // What a server ignores is in no document.
    const ignored = /the (parameter x|request header svc-request-token) is not documented$/
    expect(problemsFound().filter((problem) => !ignored.test(problem))).toEqual([])
  })

  test('requests for basins', async () => {
    await using hw = await opened()
    await expectStatuses(callerOf(hw), [
      [201, 'PUT', '/v1/basins/ensured', { json: FULL_BASIN }],
      [200, 'GET', '/v1/basins/ensured'],
      [400, 'GET', '/v1/basins/-'],
      [404, 'GET', '/v1/basins/missing'],
      [200, 'PATCH', `/v1/basins/${BASIN}`, { json: FULL_BASIN.config }],
      [422, 'PATCH', `/v1/basins/${BASIN}`, { json: NO_AGE }],
      [202, 'DELETE', '/v1/basins/ensured'],
    ])
  })

  test('requests for a basin that is being deleted', async () => {
    const isLast = (change: CatalogChange) => change.kind === 'delete' && change.collection === 'basins'
    const storage = wrapped(memory(), {}, (real) => ({
      commit: (changes) =>
        changes.some(isLast)
          ? Promise.reject(new StorageFailure('io', 'not yet', { nothingWritten: true }))
          : real.commit(changes),
    }))
    await using hw = await opened({ storage })
    await expectStatuses(callerOf(hw), [
      [202, 'DELETE', `/v1/basins/${BASIN}`],
      [409, 'PUT', `/v1/basins/${BASIN}`],
      [409, 'PATCH', `/v1/basins/${BASIN}`, { json: {} }],
      [409, 'PUT', '/v1/streams/x'],
      [409, 'PATCH', '/v1/streams/s', { json: {} }],
      [200, 'GET', '/v1/basins'],
    ])
  })

  test('requests for streams', async () => {
    await using hw = await opened()
    const inMissing = { headers: { 'svc-basin': 'missing' } }
    const noAge = { retention_policy: { age: 0 } }
    await expectStatuses(callerOf(hw), [
      [404, 'GET', '/v1/streams', inMissing],
      [201, 'POST', '/v1/streams', { json: { stream: 'a/b', config: FULL_STREAM } }],
      [404, 'POST', '/v1/streams', { json: { stream: 'x' }, ...inMissing }],
      [422, 'POST', '/v1/streams', { json: { stream: 'x', config: noAge } }],
      [404, 'PUT', '/v1/streams/ensured', inMissing],
      [422, 'PUT', '/v1/streams/ensured', { json: noAge }],
      [422, 'PATCH', '/v1/streams/s', { json: noAge }],
      [400, 'DELETE', '/v1/streams/%ff'],
    ])
  })

  test('appends', async () => {
    await using hw = await opened()
    await hw.basin(BASIN).createStream('closed')
    await hw.basin(BASIN).stream('closed').append([closeRecord()])
    await hw.basin(BASIN).reconfigure({ createStreamOnAppend: true })
    const record = { body: 'aGk=', headers: [['YQ==', 'Yg==']], timestamp: 1 }
    const full = { records: [record, {}], match_seq_num: 1, fencing_token: '' }
    const json = { records: [{}] }
    const config = JSON.stringify({ storage_class: 'standard' })
    await expectStatuses(callerOf(hw), [
      [200, 'POST', RECORDS, { json: full, headers: { 'svc-format': 'base64', 'svc-encryption-key': KEY } }],
      [200, 'POST', '/v1/streams/new/records', { json, headers: { 'svc-stream-config': config } }],
      [200, 'POST', RECORDS, { json, headers: producer(0) }],
      [409, 'POST', RECORDS, { json, headers: producer(2) }],
      [200, 'POST', RECORDS, { json, headers: producer(0, 2) }],
      [403, 'POST', RECORDS, { json, headers: producer(1, 1) }],
      [200, 'POST', RECORDS, { json, headers: { 'headwater-append': 'stream_seq=b' } }],
      [409, 'POST', RECORDS, { json, headers: { 'headwater-append': 'stream_seq=a' } }],
      [409, 'POST', '/v1/streams/closed/records', { json }],
      [200, 'POST', RECORDS, { body: PROTO_APPEND, headers: PROTO }],
      [200, 'POST', RECORDS, { headers: { 'content-type': 'svcs/proto' } }],
      [200, 'POST', RECORDS, { headers: { 'content-type': 's2s/proto' } }],
    ])
  })

  test('reads', async () => {
    await using hw = await opened()
    await hw.basin(BASIN).stream('s').append('world')
    await hw.basin(BASIN).createStream('closed')
    const closing = [{ headers: [['a', 'b']], body: 'x' } as const, closeRecord()]
    await hw.basin(BASIN).stream('closed').append(closing)
    await hw.basin(BASIN).reconfigure({ createStreamOnRead: true })
    const events = { accept: 'text/event-stream' }
    const resumed = { ...events, 'last-event-id': '0,1,13', 's2-format': 'raw' }
    const config = JSON.stringify({ storage_class: 'standard' })
    const all = 'seq_num=0&count=1&bytes=1000&until=99999999999999&wait=0&clamp=true'
    await expectStatuses(callerOf(hw), [
      [200, 'GET', `${RECORDS}?${all}`],
      [200, 'GET', `${RECORDS}?timestamp=0`, { headers: { 'svc-format': 'base64' } }],
      [200, 'GET', `${RECORDS}?tail_offset=1`, { headers: { accept: 'application/protobuf' } }],
      [200, 'GET', '/v1/streams/closed/records?seq_num=0'],
      [200, 'GET', '/v1/streams/closed/records?seq_num=0', { headers: events }],
      [200, 'GET', `${RECORDS}?seq_num=0&wait=0`, { headers: resumed }],
      [200, 'GET', `${RECORDS}?seq_num=0&wait=0`, { headers: { 'content-type': 'svcs/proto' } }],
      [200, 'GET', `${RECORDS}?seq_num=0&wait=0`, { headers: { 'content-type': 's2s/proto' } }],
      [200, 'GET', `${RECORDS}/tail`],
      [200, 'GET', '/v1/streams/closed/records/tail'],
      [400, 'GET', `${RECORDS}/tail`, { headers: { 'svc-basin': '-' } }],
      [422, 'GET', `${RECORDS}/tail`, { headers: { 'svc-stream-config': '{"retention_policy":{"age":0}}' } }],
      [200, 'GET', '/v1/streams/new/records/tail', { headers: { 'svc-stream-config': config } }],
    ])
  })

  test('appends to and reads of encrypted streams', async () => {
    await using hw = await opened()
    await hw.createBasin('encrypted', { streamCipher: 'aes-256-gcm' })
    await hw.basin('encrypted').createStream('s')
    const headers = { 'svc-basin': 'encrypted' }
    const key = { ...headers, 'svc-encryption-key': KEY }
    const json = { records: [{ body: 'hello' }] }
    await expectStatuses(callerOf(hw), [
      [200, 'POST', RECORDS, { json, headers: key }],
      [400, 'POST', RECORDS, { json, headers }],
      [200, 'GET', `${RECORDS}?seq_num=0`, { headers: key }],
      [
        400,
        'GET',
        `${RECORDS}?seq_num=0`,
        { headers: { ...key, 'svc-encryption-key': KEY.replace('A', 'B') } },
      ],
      [200, 'GET', '/v1/streams', { headers }],
    ])
  })

  test('requests for access tokens', async () => {
    await using hw = await opened()
    const scope = {
      basins: { prefix: '' },
      streams: { prefix: 'p/' },
      access_tokens: null,
      op_groups: { stream: { read: true } },
      ops: ['list-basins'],
    }
    const full = { id: 'full', expires_at: '2999-01-01T00:00:00Z', auto_prefix_streams: true, scope }
    await expectStatuses(callerOf(hw), [
      [201, 'POST', '/v1/access-tokens', { json: full }],
      [409, 'POST', '/v1/access-tokens', { json: full }],
      [200, 'GET', '/v1/access-tokens?prefix=&start_after=&limit=0'],
      [204, 'DELETE', '/v1/access-tokens/full'],
    ])
  })

  test('requests for usage', async () => {
    const clock = testClock()
    await using hw = await opened({ clock })
    await clock.advance(3 * 3600 * 1000)
    const now = Math.floor(clock.now() / 1000)
    const range = `start=${now - 7200}&end=${now}`
    const rows: Row[] = []
    for (const root of ['/v1/metrics', '/metrics']) {
      for (const set of ['storage', 'append-ops', 'read-ops', 'append-throughput', 'basin-ops']) {
        rows.push([200, 'GET', `${root}/${BASIN}?set=${set}&${range}&interval=hour`])
      }
      rows.push(
        [200, 'GET', `${root}/${BASIN}/s?set=storage&${range}`],
        [400, 'GET', `${root}/${BASIN}?set=x&${range}`],
        [400, 'GET', `${root}/${BASIN}/s?set=x&${range}`],
        [422, 'GET', `${root}/${BASIN}?set=storage`],
        [422, 'GET', `${root}/${BASIN}/s?set=storage`],
      )
    }
    await expectStatuses(callerOf(hw), [
      ...rows,
      [200, 'GET', `/v1/metrics?set=active-basins&${range}`],
      [200, 'GET', `/v1/metrics?set=account-ops&${range}`],
      [400, 'GET', `/v1/metrics?${range}`],
      [422, 'GET', '/v1/metrics?set=account-ops'],
    ])
  })

  test('monitoring', async () => {
    const storage = faultyStorage(memory())
    await using hw = await opened({ storage })
    const call = callerOf(hw)
    const etag = (await call('GET', '/')).headers.get('etag')!
    const following = await call.open('GET', `${RECORDS}?seq_num=0`, {
      headers: { accept: 'text/event-stream' },
    })
    await expectStatuses(call, [
      [200, 'GET', '/health'],
      [200, 'GET', '/ping'],
      [200, 'GET', '/metrics'],
      [200, 'GET', `/followers?basin=${BASIN}&stream=s`],
      [304, 'GET', '/', { headers: { 'if-none-match': etag } }],
    ])
    const { followers } = (await (await call('GET', '/followers')).json()) as { followers: unknown[] }
    expect(followers).toHaveLength(1)
    await following.body!.cancel()
    await expectStatuses(callerOf(hw, { page: undefined }), [[404, 'GET', '/']])
    storage.fail('get')
    await expectStatuses(call, [
      [503, 'GET', '/health'],
      [503, 'GET', '/ping'],
    ])
    storage.heal()
  })

  test('requests of the second protocol', async () => {
    // Long polls end by it.
    await using hw = await opened({ clock: systemClock })
    const call = callerOf(hw)
    const at = (name: string) => `/v1/stream/${name}`
    const text = { 'content-type': 'text/plain' }
    const produced = (seq: number, epoch = 1) => ({
      ...text,
      'producer-id': 'p',
      'producer-epoch': String(epoch),
      'producer-seq': String(seq),
    })
    await expectStatuses(call, [
      [201, 'PUT', at('a/b'), { headers: { ...text, 'stream-ttl': '60' }, body: 'hello' }],
      [200, 'PUT', at('a/b'), { headers: { ...text, 'stream-ttl': '60' } }],
      [409, 'PUT', at('a/b'), { headers: { 'content-type': 'application/json' } }],
      [201, 'PUT', at('later'), { headers: { ...text, 'stream-expires-at': '2999-01-01T00:00:00Z' } }],
      [201, 'PUT', at('fork'), { headers: { ...text, 'stream-forked-from': at('a/b') } }],
      [404, 'PUT', at('fork-2'), { headers: { ...text, 'stream-forked-from': at('missing') } }],
      [400, 'PUT', at('x'), { headers: { 'stream-ttl': 'soon' } }],
      [413, 'PUT', at('x'), { headers: text, body: 'x'.repeat(17_000_000) }],
      [204, 'POST', at('a/b'), { headers: { ...text, 'stream-seq': '1' }, body: 'world' }],
      [409, 'POST', at('a/b'), { headers: { ...text, 'stream-seq': '0' }, body: 'world' }],
      [200, 'POST', at('a/b'), { headers: produced(0), body: 'one' }],
      [204, 'POST', at('a/b'), { headers: produced(0), body: 'one' }],
      [409, 'POST', at('a/b'), { headers: produced(5), body: 'one' }],
      [403, 'POST', at('a/b'), { headers: produced(0, 0), body: 'one' }],
      [400, 'POST', at('a/b'), { headers: text }],
      [404, 'POST', at('missing'), { headers: text, body: 'x' }],
      [413, 'POST', at('a/b'), { headers: text, body: 'x'.repeat(17_000_000) }],
      [200, 'GET', `${at('a/b')}?offset=-1`],
      [200, 'GET', `${at('a/b')}?offset=now`],
      [204, 'GET', `${at('a/b')}?offset=now&live=long-poll`],
      [400, 'GET', `${at('a/b')}?offset=x`],
      [404, 'GET', at('missing')],
      [200, 'HEAD', at('a/b')],
      [404, 'HEAD', at('missing')],
      [204, 'DELETE', at('fork')],
      [404, 'DELETE', at('missing')],
      [400, 'DELETE', at('%ff')],
    ])
    const etag = (await call('GET', `${at('a/b')}?offset=-1`)).headers.get('etag')!
    await expectStatuses(call, [
      [304, 'GET', `${at('a/b')}?offset=-1`, { headers: { 'if-none-match': etag } }],
      [204, 'POST', at('later'), { headers: { ...text, 'stream-closed': 'true' }, body: 'end' }],
      [409, 'POST', at('later'), { headers: text, body: 'more' }],
      [200, 'GET', `${at('later')}?offset=-1&live=sse`],
      [200, 'HEAD', at('later')],
      // A fork keeps what was deleted.
      [201, 'PUT', at('fork-3'), { headers: { ...text, 'stream-forked-from': at('a/b') } }],
      [204, 'DELETE', at('a/b')],
      [410, 'GET', at('a/b')],
      [410, 'HEAD', at('a/b')],
      [410, 'POST', at('a/b'), { headers: text, body: 'x' }],
      [410, 'DELETE', at('a/b')],
    ])
  })
})

const FULL_STREAM = {
  storage_class: 'standard',
  retention_policy: { age: 60 },
  timestamping: { mode: 'arrival', uncapped: true },
  delete_on_empty: { min_age_secs: 5 },
}
const FULL_BASIN = {
  config: {
    default_stream_config: FULL_STREAM,
    stream_cipher: 'aes-256-gcm',
    create_stream_on_append: true,
    create_stream_on_read: true,
  },
}
const NO_AGE = { default_stream_config: { retention_policy: { age: 0 } } }
const PROTO = { 'content-type': 'application/protobuf', accept: 'application/protobuf' }
/** One record without anything. */
const PROTO_APPEND = '\n\x00'

const producer = (seq: number, epoch = 1) => ({
  'headwater-append': `producer=p&epoch=${epoch}&seq=${seq}`,
})

// The last test: what did all others show?
test('each documented response was shown', () => {
  expect(unseen()).toEqual([])
})
