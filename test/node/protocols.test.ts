import { once } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Raw, request } from './raw.ts'
import {
  type Handle,
  http2Client,
  http2Fetch,
  json,
  ok,
  startServer,
  textOf,
  trackedHandler,
  until,
} from './support.ts'

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const EMPTY_SETTINGS_FRAME = '\x00\x00\x00\x04\x00\x00\x00\x00\x00'

const describeRequest: Handle = async (exchange) =>
  json({
    method: exchange.method,
    hostname: exchange.hostname,
    path: exchange.path,
    query: exchange.query,
    header: exchange.header('svc-basin'),
    body: await textOf(exchange),
  })

describe('one plain port for both protocols', () => {
  it('serves HTTP/1.1 and HTTP/2 with prior knowledge side by side', async () => {
    const { server } = await startServer(describeRequest)
    const path = '/v1/a%2Fb?x=1'
    const described = { method: 'POST', hostname: '127.0.0.1', path: '/v1/a%2Fb', query: 'x=1' }
    const headers = { 'svc-basin': 'one' }
    const response = await fetch(`${server.url}${path}`, { method: 'POST', headers, body: 'first' })
    expect(await response.json()).toEqual({ ...described, header: 'one', body: 'first' })
    const session = await http2Client(server.url)
    const sent = { ':method': 'POST', ':path': path, 'svc-basin': 'two' }
    const second = await http2Fetch(session, sent, 'second')
    expect(JSON.parse(second.body)).toEqual({ ...described, header: 'two', body: 'second' })
  })

  it('recognizes the HTTP/2 preface when it arrives byte by byte', async () => {
    const { server } = await startServer(describeRequest)
    const client = new Raw(server.port)
    await once(client.socket, 'connect')
    for (const byte of PREFACE + EMPTY_SETTINGS_FRAME) {
      await new Promise<void>((resolve) => client.socket.write(byte, 'latin1', () => setImmediate(resolve)))
    }
    // A SETTINGS frame of the server, then the acknowledgement of the client's.
    await client.until('\x00\x00\x00\x04\x01\x00\x00\x00\x00')
    expect(server.counts().http2Sessions).toBe(1)
  })

  it('recognizes HTTP/1.1 that begins like the preface and arrives byte by byte', async () => {
    const { server } = await startServer(describeRequest)
    const client = new Raw(server.port)
    await once(client.socket, 'connect')
    for (const byte of request('PROPFIND', '/x')) {
      await new Promise<void>((resolve) => client.socket.write(byte, () => setImmediate(resolve)))
    }
    expect(await client.until('PROPFIND"')).toContain('200 OK')
  })

  it('drops a connection that stays silent', async () => {
    const { server } = await startServer(describeRequest, { limits: { handshakeMs: 1 } })
    const silent = new Raw(server.port)
    await silent.closed
    const hesitant = new Raw(server.port).send('PRI * HT')
    await hesitant.closed
    expect(silent.received + hesitant.received).toBe('')
    await until(() => server.counts().connections === 0)
  })

  it('drops a connection whose headers are slow', async () => {
    const { server } = await startServer(describeRequest, { limits: { headersMs: 100 } })
    const client = new Raw(server.port).send('GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
    // By default, Node would look for late headers after 30 seconds.
    await expect.poll(() => client.received).toMatch(/^HTTP\/1.1 408 /)
    await client.closed
  })

  it.each([
    ['the preface', PREFACE],
    // Type 1, without the flags for the end of the headers and of the stream.
    ['headers that do not end', `${PREFACE}\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x01\x82`],
  ])('drops an HTTP/2 connection that sends only %s', async (_, bytes) => {
    const { server } = await startServer(describeRequest, { limits: { headersMs: 100 } })
    const client = new Raw(server.port).send(bytes)
    await client.closed
    await until(() => server.counts().connections === 0)
  })

  it('keeps an HTTP/2 connection between requests', async () => {
    const { server } = await startServer(describeRequest, { limits: { headersMs: 2_000 } })
    // The first request of the session has to come within the limit.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    const session = await http2Client(server.url)
    expect((await http2Fetch(session, { ':path': '/' })).headers[':status']).toBe(200)
    const later = new Raw(server.port).send(PREFACE)
    await until(() => later.received !== '')
    await vi.advanceTimersByTimeAsync(2_000)
    await later.closed
    expect((await http2Fetch(session, { ':path': '/' })).headers[':status']).toBe(200)
  })

  it.each([
    ['binary noise', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['a broken preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\rX'],
    ['a request line of an unknown version', 'GET / HTTP/9.9\r\n\r\n'],
    ['a header without a colon', 'GET / HTTP/1.1\r\nnonsense\r\n\r\n'],
  ])('rejects %s with 400 and keeps serving', async (_, bytes) => {
    const { server } = await startServer(describeRequest)
    const client = new Raw(server.port).send(bytes)
    await client.closed
    expect(client.received).toMatch(/^HTTP\/1\.1 400 /)
    expect((await fetch(server.url)).status).toBe(200)
  })

  it('ends an HTTP/2 connection that sends garbage after the preface', async () => {
    const { server } = await startServer(describeRequest)
    const client = new Raw(server.port).send(`${PREFACE}${'garbage '.repeat(20)}`)
    await client.closed
    await until(() => server.counts().connections === 0)
    expect((await fetch(server.url)).status).toBe(200)
  })

  it('survives a client that resets before it has sent anything', async () => {
    const { server } = await startServer(describeRequest)
    const client = new Raw(server.port)
    await once(client.socket, 'connect')
    await until(() => server.counts().connections === 1)
    client.socket.resetAndDestroy()
    await until(() => server.counts().connections === 0)
    expect((await fetch(server.url)).status).toBe(200)
  })
})

describe('limits', () => {
  it('accepts many pipelined requests, up to a limit', { tags: ['slow'] }, async () => {
    const { handler, fates } = trackedHandler()
    const { server, errors } = await startServer(handler)
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    onTestFinished(() => void process.off('warning', onWarning))
    const thousand = request('GET', '/pending').repeat(1_000)
    const client = new Raw(server.port).send(thousand)
    await until(() => fates.length === 1_000)
    client.send(thousand)
    await client.closed
    await until(() => server.counts().requests === 0)
    expect(fates).toHaveLength(1_000)
    expect(fates.every((fate) => fate.aborted)).toBe(true)
    expect(warnings).toEqual([])
    expect(errors).toEqual([])
  })

  it('accepts headers of 16 KiB and rejects 64 KiB with 431', async () => {
    const { server } = await startServer((exchange) => ok(exchange.header('x-long')))
    const long = 'x'.repeat(16 * 1024)
    expect(await (await fetch(server.url, { headers: { 'x-long': long } })).text()).toBe(long)
    const client = new Raw(server.port).send(request('GET', '/', { 'x-long': 'x'.repeat(64 * 1024) }))
    await client.closed
    expect(client.received).toMatch(/^HTTP\/1\.1 431 /)
  })

  it('accepts headers of 16 KiB over HTTP/2 and rejects more than its setting', async () => {
    const { server } = await startServer((exchange) => ok(exchange.header('x-long')))
    const session = await http2Client(server.url)
    const long = 'x'.repeat(16 * 1024)
    expect((await http2Fetch(session, { ':path': '/', 'x-long': long })).body).toBe(long)
    await expect(http2Fetch(session, { ':path': '/', 'x-long': 'x'.repeat(64 * 1024) })).rejects.toThrow()
    expect((await http2Fetch(session, { ':path': '/' })).headers[':status']).toBe(200)
  })

  it('announces windows and frames above 1 MiB, and at least 100 streams', async () => {
    const { server } = await startServer(describeRequest)
    const session = await http2Client(server.url)
    await until(() => (session.remoteSettings.initialWindowSize ?? 0) > 1024 * 1024)
    const settings = session.remoteSettings
    expect(settings.maxFrameSize).toBeGreaterThan(1024 * 1024)
    expect(settings.maxConcurrentStreams).toBeGreaterThanOrEqual(100)
    await until(() => (session.state.remoteWindowSize ?? 0) > 1024 * 1024)
  })

  it('keeps idle HTTP/1.1 connections for over a minute', async () => {
    const { server } = await startServer(describeRequest)
    const client = new Raw(server.port).send(request('GET', '/'))
    expect(await client.until('"method"')).toMatch(/keep-alive: timeout=65/i)
  })
})
