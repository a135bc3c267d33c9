import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ROOT_TOKEN, resultOf, service } from './run.ts'

const LIST = ['token', 'list']
const ISSUE = ['token', 'issue', 'ci', '--ops', 'read']
const SECRET = 'the-token-of-a-client'

/** A service that responds to every request with `response`. */
function respondingWith(response: () => Response | Promise<Response>) {
  return { fetch: async () => response(), env: { HEADWATER_TOKEN: SECRET } }
}

function refusedConnection(code: string): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(`connect ${code}`), { code }) })
}

describe('a server', () => {
  it.each([
    [[], 'http://127.0.0.1:8787/v1/access-tokens'],
    [['--url', 'http://127.0.0.1:8787/'], 'http://127.0.0.1:8787/v1/access-tokens'],
    [['--url', 'https://here.example/v1/'], 'https://here.example/v1/access-tokens'],
    [['--url', 'https://here.example/streams'], 'https://here.example/streams/v1/access-tokens'],
  ])('is asked at the URL that is given: with %j at %s', async (options, expected) => {
    const { world, requests } = await service()
    await resultOf([...LIST, ...options, '--token', ROOT_TOKEN], world)
    expect(requests.map(({ url }) => url.split('?')[0])).toEqual([expected])
  })

  it.each([
    [refusedConnection('ECONNREFUSED'), 'connection refused', ''],
    [refusedConnection('ENOTFOUND'), 'connect ENOTFOUND', ''],
    [new TypeError('fetch failed'), 'fetch failed', '; the request may have taken effect'],
    [
      refusedConnection('ERR_SSL_WRONG_VERSION_NUMBER'),
      'the server does not use TLS; try a URL that begins with http:',
      '',
    ],
    [
      refusedConnection('DEPTH_ZERO_SELF_SIGNED_CERT'),
      'connect DEPTH_ZERO_SELF_SIGNED_CERT; set NODE_EXTRA_CA_CERTS to trust it',
      '',
    ],
  ])('is named when it cannot be reached: %s', async (error, reason, doubt) => {
    const world = respondingWith(() => Promise.reject(error))
    const message = `headwater: cannot reach http://there:1: ${reason}`
    expect((await resultOf([...LIST, '--url', 'http://there:1'], world)).err).toEqual([message])
    const { exitCode, err } = await resultOf([...ISSUE, '--url', 'http://there:1'], world)
    expect([exitCode, err]).toEqual([1, [`${message}${doubt}`]])
  })

  it.each([
    [LIST, ['Start a server with `headwater serve`, or open a directory with `--storage`']],
    [[...LIST, '--url', 'http://there:1'], []],
  ])('is explained when nothing listens at the default URL: %j', async (args, hint) => {
    const world = respondingWith(() => Promise.reject(refusedConnection('ECONNREFUSED')))
    const refused = expect.stringMatching(/^headwater: cannot reach http:.*: connection refused$/)
    expect(await resultOf(args, world)).toEqual({ exitCode: 1, out: [], err: [...hint, refused] })
  })

  const URL = 'http://127.0.0.1:8787'
  it.each<[string, () => Response, string]>([
    [
      'an error',
      () => Response.json({ code: 'odd', message: 'no\u001b[2J' }, { status: 418 }),
      `${URL} responded with status 418: no [2J (odd)`,
    ],
    [
      'an error page of a proxy',
      () => new Response('<html>', { status: 502 }),
      `${URL} responded with status 502`,
    ],
    [
      'an error without a code',
      () => Response.json({ message: 'x' }, { status: 500 }),
      `${URL} responded with status 500`,
    ],
    [
      'a redirect',
      () => new Response(null, { status: 307, headers: { location: 'http://evil' } }),
      `unexpected response from ${URL}: it redirects; pass the final address as the URL`,
    ],
    [
      'a body that is not JSON',
      () => new Response('hello', { headers: { 'content-type': 'application/json' } }),
      `unexpected response from ${URL}: invalid JSON`,
    ],
    [
      'unexpected JSON',
      () => Response.json({ access_tokens: [{ id: 1 }], has_more: false }),
      `unexpected response from ${URL}: \`id\` must be a string`,
    ],
    [
      'a response that is too long',
      () => new Response(new Uint8Array(16 * 1024 * 1024 + 1)),
      `unexpected response from ${URL}: its body is too long`,
    ],
    [
      'an endless list',
      () => Response.json({ access_tokens: [], has_more: true }),
      'the list is out of order (other)',
    ],
    [
      'the same page forever',
      () =>
        Response.json({
          access_tokens: [{ id: 'a', expires_at: null, auto_prefix_streams: false, scope: {} }],
          has_more: true,
        }),
      'the list is out of order (other)',
    ],
  ])('whose response makes no sense is reported: %s', async (_, answer, message) => {
    const { exitCode, out, err } = await resultOf(LIST, respondingWith(answer))
    expect([exitCode, out, err]).toEqual([1, [], [`headwater: ${message}`]])
  })

  it.each([
    [
      'no token',
      {},
      `unexpected response from ${URL}: missing member \`access_token\`; the request may have taken effect`,
    ],
    ['an invalid token', { access_token: 'two\nlines' }, 'the server returned an invalid token; revoke it'],
  ])(
    'causes an error when it issues no valid token, and nothing is printed: %s',
    async (_, body, problem) => {
      const { exitCode, out, err } = await resultOf(
        ISSUE,
        respondingWith(() => Response.json(body, { status: 201 })),
      )
      expect([exitCode, out]).toEqual([1, []])
      expect(err).toEqual([`headwater: ${problem}`])
    },
  )
})

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
})
