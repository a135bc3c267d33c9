import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'
import { ROOT_TOKEN, resultOf, run, service } from './run.ts'

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

const REJECTED = [
  'The access token of `--token` is not valid',
  'headwater: a valid access token is required (authn)',
]

describe('headwater token with a service', () => {
  it.each([
    [['--token', ROOT_TOKEN], { HEADWATER_TOKEN: 'wrong', HEADWATER_ROOT_TOKEN: 'wrong' }],
    [[], { HEADWATER_TOKEN: ROOT_TOKEN, HEADWATER_ROOT_TOKEN: 'wrong' }],
    [[], { HEADWATER_TOKEN: '', HEADWATER_ROOT_TOKEN: ROOT_TOKEN }],
  ])('sends the first token of %j and %j', async (options, env) => {
    const { world } = await service()
    expect((await resultOf([...LIST, ...options], { ...world, env })).exitCode).toBe(0)
  })

  it('sends no token if none is given', async () => {
    const { world, requests } = await service({ open: true })
    expect((await resultOf(LIST, world)).exitCode).toBe(0)
    expect(requests[0]!.headers.has('authorization')).toBe(false)
  })

  it.each([
    [[], 'http://127.0.0.1:8787/v1/access-tokens'],
    [['--url', 'http://127.0.0.1:8787/'], 'http://127.0.0.1:8787/v1/access-tokens'],
    [['--url', 'https://here.example/v1/'], 'https://here.example/v1/access-tokens'],
    [['--url', 'https://here.example/streams'], 'https://here.example/streams/v1/access-tokens'],
  ])('with %j requests %s', async (options, expected) => {
    const { world, requests } = await service()
    await resultOf([...LIST, ...options, '--token', ROOT_TOKEN], world)
    expect(requests.map(({ url }) => url.split('?')[0])).toEqual([expected])
  })

  it('reports a missing token and the variable to set', async () => {
    const { world } = await service()
    expect(await resultOf(LIST, world)).toEqual({
      exitCode: 1,
      out: [],
      err: [
        'No access token was given; set HEADWATER_TOKEN, or use `headwater login`',
        'headwater: a valid access token is required (authn)',
      ],
    })
  })

  it('reports a wrong token without printing it', async () => {
    const { world } = await service()
    const { exitCode, err } = await resultOf([...LIST, '--token', SECRET], world)
    expect([exitCode, err]).toEqual([1, REJECTED])
  })

  it('stops revoking at an error that concerns all tokens', async () => {
    const { world, requests } = await service()
    const { exitCode, err } = await resultOf(['token', 'revoke', 'a', 'b', '--token', SECRET], world)
    expect([exitCode, err]).toEqual([1, REJECTED])
    expect(requests).toHaveLength(1)
  })

  it('continues revoking after a token that is out of scope', async () => {
    const { hw, world } = await service()
    const scope = { accessTokens: { prefix: 'mine/' }, ops: ['revoke-access-token'] } as const
    const token = await hw.issueAccessToken({ id: 'mine/me', scope })
    await hw.issueAccessToken({ id: 'mine/other', scope })
    const { exitCode, out, err } = await resultOf(
      ['token', 'revoke', 'theirs', 'mine/other', '--token', token],
      world,
    )
    expect([exitCode, out]).toEqual([1, ['Revoked mine/other']])
    expect(err[0]).toMatch(/^headwater: `theirs`: .* \(permission_denied\)$/)
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
      refusedConnection('ERR_SSL_PACKET_LENGTH_TOO_LONG'),
      'the server does not use TLS; try a URL that begins with http:',
      '',
    ],
    [
      refusedConnection('DEPTH_ZERO_SELF_SIGNED_CERT'),
      'connect DEPTH_ZERO_SELF_SIGNED_CERT; set NODE_EXTRA_CA_CERTS to trust it',
      '',
    ],
  ])('reports which URL it cannot reach: %s', async (error, reason, doubt) => {
    const world = respondingWith(() => Promise.reject(error))
    const message = `headwater: cannot reach http://there:1: ${reason}`
    expect((await resultOf([...LIST, '--url', 'http://there:1'], world)).err).toEqual([message])
    const { exitCode, err } = await resultOf([...ISSUE, '--url', 'http://there:1'], world)
    expect([exitCode, err]).toEqual([1, [`${message}${doubt}`]])
  })

  it.each([
    [LIST, ['Start a server with `headwater serve`, or open a directory with `--storage`']],
    [[...LIST, '--url', 'http://there:1'], []],
  ])('explains how to begin if nothing listens at the default URL: %j', async (args, hint) => {
    const world = respondingWith(() => Promise.reject(refusedConnection('ECONNREFUSED')))
    const refused = expect.stringMatching(/^headwater: cannot reach http:.*: connection refused$/)
    expect(await resultOf(args, world)).toEqual({ exitCode: 1, out: [], err: [...hint, refused] })
  })

  it.each(['HEADWATER_TOKEN', 'HEADWATER_ROOT_TOKEN'])('names %s if its token is rejected', async (name) => {
    const { world } = await service()
    const { err } = await resultOf(LIST, { ...world, env: { [name]: SECRET } })
    expect(err).toEqual([`The access token of ${name} is not valid`, REJECTED[1]])
  })

  it('gives up after 30 seconds without a response', async () => {
    const clock = virtualClock()
    const fetch = (request: Request) =>
      new Promise<Response>((_, reject) => {
        request.signal.addEventListener('abort', () => reject(request.signal.reason))
      })
    const { exitCode, err } = run(LIST, { fetch, clock })
    await clock.advance('30s')
    expect(await exitCode).toBe(1)
    expect(err).toEqual(['headwater: no data from http://127.0.0.1:8787 within 30 seconds'])
    expect(clock.pending).toBe(0)
  })

  it('leaves no timer armed', async () => {
    const clock = virtualClock()
    const world = { ...respondingWith(() => Response.json({ access_tokens: [], has_more: false })), clock }
    expect((await resultOf(LIST, world)).exitCode).toBe(0)
    expect(clock.pending).toBe(0)
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
      () => new Response('hello'),
      `unexpected response from ${URL}: its body is not JSON`,
    ],
    [
      'unexpected JSON',
      () => Response.json({ access_tokens: [{ id: 1 }], has_more: false }),
      `unexpected response from ${URL}: \`id\` is not a string`,
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
  ])('reports %s', async (_, answer, message) => {
    const { exitCode, out, err } = await resultOf(LIST, respondingWith(answer))
    expect([exitCode, out, err]).toEqual([1, [], [`headwater: ${message}`]])
  })

  it.each([
    [
      'no token',
      {},
      `unexpected response from ${URL}: \`access_token\` is not a string; the request may have taken effect`,
    ],
    ['an invalid token', { access_token: 'two\nlines' }, 'the server returned an invalid token; revoke it'],
  ])('prints no token if the response contains %s', async (_, body, problem) => {
    const { exitCode, out, err } = await resultOf(
      ISSUE,
      respondingWith(() => Response.json(body, { status: 201 })),
    )
    expect([exitCode, out]).toEqual([1, []])
    expect(err).toEqual([`headwater: ${problem}`])
  })

  it('does not follow redirects, which would forward its token', async () => {
    const requests: Request[] = []
    const fetch = async (request: Request) => {
      requests.push(request)
      return new Response(null, { status: 302, headers: { location: 'http://evil' } })
    }
    await resultOf(ISSUE, { fetch, env: { HEADWATER_TOKEN: SECRET } })
    expect(requests.map(({ redirect }) => redirect)).toEqual(['manual'])
  })
})
