import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { connect as connectTls } from 'node:tls'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Raw, request } from './raw.ts'
import {
  collect,
  http2Client,
  http2Fetch,
  ok,
  startServer,
  textOf,
  trackedHandler,
  until,
} from './support.ts'

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'utf8')
const cert = fixture('test-only-cert.pem')
const tls = { cert, key: fixture('test-only-key.pem') }

describe('TLS', () => {
  it('serves both protocols by ALPN', async () => {
    const { server } = await startServer(
      async (exchange) => ok(`${exchange.hostname}${exchange.path} ${await textOf(exchange)}`),
      { tls },
    )
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`)

    const session = await http2Client(server.url, { ca: cert })
    const second = await http2Fetch(session, { ':method': 'POST', ':path': '/two' }, 'h2')
    expect(second.body).toBe('127.0.0.1/two h2')
    expect(session.alpnProtocol).toBe('h2')

    const upload = httpsRequest(`${server.url}/one`, { ca: cert, method: 'POST', agent: false })
    upload.end('http1')
    const [response] = await once(upload, 'response')
    expect(Buffer.concat(await collect(response)).toString()).toBe('127.0.0.1/one http1')
  })

  it('serves HTTP/1.1 to a client without ALPN', async () => {
    const { server } = await startServer(() => ok(), { tls })
    const socket = connectTls({ port: server.port, host: '127.0.0.1', ca: cert })
    onTestFinished(() => void socket.destroy())
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(Buffer.concat(await collect(socket)).toString()).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*ok$/)
  })

  it('releases the resources of clients that leave, on both protocols', async () => {
    const { handler, fates } = trackedHandler()
    const { server } = await startServer(handler, { tls })
    const session = await http2Client(server.url, { ca: cert })
    const stream = session.request({ ':path': '/live' })
    stream.on('error', () => {})
    await once(stream, 'data')
    const request = httpsRequest(`${server.url}/live`, { ca: cert, agent: false }).end()
    request.on('error', () => {})
    const [response] = await once(request, 'response')
    response.on('error', () => {})
    await once(response, 'data')
    session.destroy()
    request.destroy()
    await until(() => fates.length === 2 && fates.every((fate) => fate.cancelled && fate.aborted))
    await until(() => server.counts().connections === 0)
  })

  it('survives a client that does not speak TLS, and one that never finishes its handshake', async () => {
    const { server, errors } = await startServer(() => ok(), { tls, limits: { handshakeMs: 100 } })
    const plain = new Raw(server.port).send(request('GET', '/'))
    const silent = new Raw(server.port)
    await Promise.all([plain.closed, silent.closed])
    expect(plain.received).not.toContain('200')
    await until(() => server.counts().connections === 0)
    expect(errors).toEqual([])
  })

  it('closes with idle and silent connections', async () => {
    const { server } = await startServer(() => ok(), { tls })
    const session = await http2Client(server.url, { ca: cert })
    expect((await http2Fetch(session, { ':path': '/' })).body).toBe('ok')
    const silent = connectTls({ port: server.port, host: '127.0.0.1', ca: cert, ALPNProtocols: ['http/1.1'] })
    silent.on('error', () => {})
    await once(silent, 'secureConnect')
    await until(() => server.counts().connections === 2)
    await server.close({ graceMs: 600_000 })
    expect(server.counts()).toEqual({ connections: 0, http2Sessions: 0, requests: 0 })
  })
})
