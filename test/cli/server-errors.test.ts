import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Server, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { listening } from '../support/listening.ts'
import { ROOT_TOKEN, resultOf, service } from './run.ts'

const LIST = ['token', 'list']
const ISSUE = ['token', 'issue', 'ci', '--ops', 'read']
const DEFAULT_URL = 'http://127.0.0.1:8787'
const THERE = 'http://there:1'
const MAY_HAVE_EFFECTS = '; the request may have taken effect'

/** What a command prints that fails because of the response to its request. */
async function errorsOf(args: readonly string[], respond: () => Response | Promise<Response>) {
  const env = { HEADWATER_TOKEN: 'the-token-of-a-client' }
  const { exitCode, out, err } = await resultOf(args, { fetch: async () => respond(), env })
  expect([exitCode, out]).toEqual([1, []])
  return err
}

function failed(code: string): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(`connect ${code}`), { code }) })
}

it.each([
  [[], 'http://127.0.0.1:8787/v1/access-tokens'],
  [['--url', 'http://127.0.0.1:8787/'], 'http://127.0.0.1:8787/v1/access-tokens'],
  [['--url', 'https://here.example/v1/'], 'https://here.example/v1/access-tokens'],
  [['--url', 'https://here.example/streams'], 'https://here.example/streams/v1/access-tokens'],
])('a server is asked at the URL that is given: with %j at %s', async (options, expected) => {
  const { world, requests } = await service()
  await resultOf([...LIST, ...options, '--token', ROOT_TOKEN], world)
  expect(requests.map(({ url }) => url.split('?')[0])).toEqual([expected])
})

describe('a server that cannot be reached', () => {
  it.each([
    [failed('ECONNREFUSED'), 'connection refused', ''],
    [failed('ENOTFOUND'), 'connect ENOTFOUND', ''],
    [new TypeError('fetch failed'), 'fetch failed', MAY_HAVE_EFFECTS],
    [
      failed('ERR_SSL_WRONG_VERSION_NUMBER'),
      'the server does not use TLS; try a URL that begins with http:',
      '',
    ],
    [
      failed('DEPTH_ZERO_SELF_SIGNED_CERT'),
      'connect DEPTH_ZERO_SELF_SIGNED_CERT; set NODE_EXTRA_CA_CERTS to trust it',
      '',
    ],
  ])('is named: %s', async (error, reason, doubt) => {
    const message = `headwater: cannot reach ${THERE}: ${reason}`
    const respond = () => Promise.reject(error)
    expect(await errorsOf([...LIST, '--url', THERE], respond)).toEqual([message])
    expect(await errorsOf([...ISSUE, '--url', THERE], respond)).toEqual([`${message}${doubt}`])
  })

  it('at the default URL can be started', async () => {
    expect(await errorsOf(LIST, () => Promise.reject(failed('ECONNREFUSED')))).toEqual([
      'Start a server with `headwater serve`, or open a directory with `--storage`',
      `headwater: cannot reach ${DEFAULT_URL}: connection refused`,
    ])
  })
})

const page = (entry: object) => Response.json({ access_tokens: [entry], has_more: true })
const TOKEN = { id: 'a', expires_at: null, auto_prefix_streams: false, scope: {} }
const RESPONDED = `${DEFAULT_URL} responded with status`
const UNEXPECTED = `unexpected response from ${DEFAULT_URL}:`

it.each<[string, readonly string[], () => Response, string]>([
  [
    'an error',
    LIST,
    () => Response.json({ code: 'odd', message: 'no\u001b[2J' }, { status: 418 }),
    `${RESPONDED} 418: no [2J (odd)`,
  ],
  ['an error page of a proxy', LIST, () => new Response('<html>', { status: 502 }), `${RESPONDED} 502`],
  [
    'a redirect',
    LIST,
    () => new Response(null, { status: 307, headers: { location: 'http://evil' } }),
    `${UNEXPECTED} it redirects; pass the final address as the URL`,
  ],
  [
    'a body that is not JSON',
    LIST,
    () => new Response('hello', { headers: { 'content-type': 'application/json' } }),
    `${UNEXPECTED} invalid JSON`,
  ],
  ['unexpected JSON', LIST, () => page({ id: 1 }), `${UNEXPECTED} \`id\` must be a string`],
  ['the same page forever', LIST, () => page(TOKEN), 'the list is out of order (other)'],
  [
    'no token',
    ISSUE,
    () => Response.json({}, { status: 201 }),
    `${UNEXPECTED} missing member \`access_token\`${MAY_HAVE_EFFECTS}`,
  ],
  [
    'an invalid token',
    ISSUE,
    () => Response.json({ access_token: 'two\nlines' }, { status: 201 }),
    'the server returned an invalid token; revoke it',
  ],
])('a response that makes no sense is reported: %s', async (_, args, respond, message) => {
  expect(await errorsOf(args, respond)).toEqual([`headwater: ${message}`])
})

const fixture = (name: string) => readFileSync(new URL(`../node/fixtures/${name}`, import.meta.url))
const identity = () => ({ cert: fixture('test-only-cert.pem'), key: fixture('test-only-key.pem') })

const USE_HTTPS = 'if the server uses TLS, try a URL that begins with https:'

/** How a closed connection is reported depends on what was being read or written. */
const CLOSED = '(other side closed|(read|write) (ECONNRESET|EPIPE))'
const TLS_ALERT = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46])

/** A server that does `act` with each connection that has sent something. */
function onData(act: (socket: Socket) => void): Server {
  return createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => act(socket))
  })
}

describe('a URL with the wrong scheme', () => {
  it.each<[string, string, readonly string[], () => Server, string]>([
    ['http', 'a server with TLS', ['ls'], () => createHttpsServer(identity()), `${CLOSED}; ${USE_HTTPS}`],
    [
      'http',
      'a server that resets the connection',
      ['create', 'app/s'],
      () => onData((socket) => socket.resetAndDestroy()),
      `${CLOSED}${MAY_HAVE_EFFECTS}; ${USE_HTTPS}`,
    ],
    [
      'http',
      'a server that sends a TLS alert',
      ['ls'],
      () => onData((socket) => socket.end(TLS_ALERT)),
      `Response does not match the HTTP/1.1 protocol .*; ${USE_HTTPS}`,
    ],
    [
      'https',
      'a server without TLS',
      ['ls'],
      () => createHttpServer(),
      'the server does not use TLS; try a URL that begins with http:',
    ],
    [
      'https',
      'a server that closes the connection',
      ['ls'],
      () => onData((socket) => socket.end()),
      `.*before secure TLS connection was established`,
    ],
  ])('%s: is reported at %s', async (scheme, _, args, server, message) => {
    const url = await listening(server(), scheme)
    const fetched = { fetch: (request: Request) => fetch(request) }
    const { exitCode, err } = await resultOf([...args, '--url', url], fetched)
    const line = new RegExp(`^headwater: cannot reach ${url}: ${message}$`)
    expect([exitCode, err]).toEqual([1, [expect.stringMatching(line)]])
  })
})
