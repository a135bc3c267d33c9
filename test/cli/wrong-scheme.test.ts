import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { resultOf, run, service } from './run.ts'

const fixture = (name: string) => readFileSync(new URL(`../node/fixtures/${name}`, import.meta.url))
const identity = () => ({ cert: fixture('test-only-cert.pem'), key: fixture('test-only-key.pem') })

const USE_HTTP = 'if the server does not use TLS, try a URL that begins with http:'
const USE_HTTPS = 'if the server uses TLS, try a URL that begins with https:'

/** How a closed connection is reported depends on what was being read or written. */
const CLOSED = '(other side closed|(read|write) (ECONNRESET|EPIPE))'

/** A server on a free port that does `act` with each connection that has sent something. */
function onData(act: (socket: Socket) => void): Server {
  return createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => act(socket))
  })
}

/** Resolves to the port of a server, which is closed after the test. */
async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** Matches the whole line. */
function reported(url: string, pattern: string) {
  return expect.stringMatching(new RegExp(`^headwater: cannot reach ${url}: ${pattern}$`))
}

const TLS_ALERT = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46])

describe('a URL with the wrong scheme', () => {
  it.each<[string, string, () => Server, string]>([
    ['http', 'a server with TLS', () => createHttpsServer(identity()), `${CLOSED}; ${USE_HTTPS}`],
    [
      'http',
      'a server that resets the connection',
      () => onData((socket) => socket.resetAndDestroy()),
      `${CLOSED}; ${USE_HTTPS}`,
    ],
    [
      'http',
      'a server that sends a TLS alert',
      () => onData((socket) => socket.end(TLS_ALERT)),
      `Response does not match the HTTP/1.1 protocol .*; ${USE_HTTPS}`,
    ],
    [
      'https',
      'a server without TLS',
      () => createHttpServer(),
      'the server does not use TLS; try a URL that begins with http:',
    ],
    [
      'https',
      'a server that closes the connection',
      () => onData((socket) => socket.end()),
      `the connection was closed during the TLS handshake; ${USE_HTTP}`,
    ],
  ])('%s: is reported at %s', async (scheme, _, server, message) => {
    const url = `${scheme}://127.0.0.1:${await portOf(server())}`
    const options = { fetch: (request: Request) => fetch(request) }
    const { exitCode, err } = await resultOf(['ls', '--url', url], options)
    expect([exitCode, err]).toEqual([1, [reported(url, message)]])
  })

  it.each<[string, string, string]>([
    ['nginx', '400 Bad Request', '<center>The plain HTTP request was sent to HTTPS port</center>'],
    ['a server in Go', '400 Bad Request', 'Client sent an HTTP request to an HTTPS server.\n'],
    ['a redirect', '301 Moved Permanently\r\nlocation: https://there/', ''],
    ['a permanent redirect', '308 Permanent Redirect\r\nlocation: https://there/', ''],
  ])('is reported at the response of %s', async (_, head, body) => {
    const response = `HTTP/1.1 ${head}\r\nconnection: close\r\n\r\n${body}`
    const url = `http://127.0.0.1:${await portOf(onData((socket) => socket.end(response)))}`
    const options = { fetch: (request: Request) => fetch(request) }
    const { exitCode, err } = await resultOf(['ls', '--url', url], options)
    const problem = `unexpected response from ${url}: its status is ${head.slice(0, 3)}`
    expect([exitCode, err]).toEqual([1, [`headwater: ${problem}; ${USE_HTTPS}`]])
  })

  it('is not suggested by other responses', async () => {
    for (const [url, response] of [
      ['http://there', new Response('no', { status: 400 })],
      ['http://there', new Response('use https', { status: 404 })],
      ['https://there', new Response('use https', { status: 400 })],
    ] as const) {
      const { err } = await resultOf(['ls', '--url', url], { fetch: async () => response })
      expect(err).toEqual([`headwater: ${url} responded with status ${response.status}; check the URL`])
    }
  })

  it('is suggested after the statement that a request may have taken effect', async () => {
    const url = `http://127.0.0.1:${await portOf(onData((socket) => socket.resetAndDestroy()))}`
    const options = { fetch: (request: Request) => fetch(request) }
    const { err } = await resultOf(['create', 'app/s', '--url', url], options)
    const message = `${CLOSED}; the request may have taken effect; ${USE_HTTPS}`
    expect(err).toEqual([reported(url, message)])
  })

  it('is not suggested once the server has responded', async () => {
    const { hw, world } = await service({ open: true })
    await hw.createBasin('app')
    await hw.basin('app').createStream('s')
    const broken = new TypeError('fetch failed', {
      cause: Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }),
    })
    const relay = (request: Request) =>
      request.method === 'POST' ? Promise.reject(broken) : world.fetch(request)
    const { exitCode, err } = run(['append', 'app/s', 'text'], { ...world, fetch: relay })
    expect(await exitCode).toBe(1)
    expect(err).toEqual([
      'headwater: cannot reach http://127.0.0.1:8787: other side closed; the request may have taken effect',
    ])
  })
})
