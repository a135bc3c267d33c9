import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'
import { ROOT_TOKEN, resultOf, run, service } from './run.ts'

const LIST = ['token', 'list']
const ISSUE = ['token', 'issue', 'ci', '--ops', 'read']
const SECRET = 'a-secret-of-somebody'

/** A service that gives this answer to everything. */
function answering(answer: () => Response | Promise<Response>) {
  return { fetch: async () => answer(), env: { HEADWATER_TOKEN: SECRET } }
}

function refusedConnection(code: string): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(`connect ${code}`), { code }) })
}

describe('headwater token at a service', () => {
  it.each([
    [['--token', ROOT_TOKEN], { HEADWATER_TOKEN: 'wrong', HEADWATER_ROOT_TOKEN: 'wrong' }],
    [[], { HEADWATER_TOKEN: ROOT_TOKEN, HEADWATER_ROOT_TOKEN: 'wrong' }],
    [[], { HEADWATER_TOKEN: '', HEADWATER_ROOT_TOKEN: ROOT_TOKEN }],
  ])('takes its token from %j and %j', async (options, env) => {
    const { world } = await service()
    expect((await resultOf([...LIST, ...options], { ...world, env })).exitCode).toBe(0)
  })

  it('works without a token where none is demanded', async () => {
    const { world, requests } = await service({ open: true })
    expect((await resultOf(LIST, world)).exitCode).toBe(0)
    expect(requests[0]!.headers.has('authorization')).toBe(false)
  })

  it.each([
    [[], 'http://127.0.0.1:8787/v1/access-tokens'],
    [['--url', 'http://127.0.0.1:8787/'], 'http://127.0.0.1:8787/v1/access-tokens'],
    [['--url', 'https://here.example/v1/'], 'https://here.example/v1/access-tokens'],
    [['--url', 'https://here.example/streams'], 'https://here.example/streams/v1/access-tokens'],
  ])('with %j asks at %s', async (options, expected) => {
    const { world, requests } = await service()
    await resultOf([...LIST, ...options, '--token', ROOT_TOKEN], world)
    expect(requests.map(({ url }) => url.split('?')[0])).toEqual([expected])
  })

  it('says when a token is missing', async () => {
    const { world } = await service()
    expect(await resultOf(LIST, world)).toEqual({
      exitCode: 1,
      out: [],
      err: [
        'No token was given: see HEADWATER_TOKEN in the --help of the command',
        'headwater: a valid access token is required (authn)',
      ],
    })
  })

  it('says when a token is wrong, without it', async () => {
    const { world } = await service()
    const { exitCode, err } = await resultOf([...LIST, '--token', SECRET], world)
    expect([exitCode, err]).toEqual([1, ['headwater: a valid access token is required (authn)']])
  })

  it('stops revoking at what is not about one token', async () => {
    const { world, requests } = await service()
    const { exitCode, err } = await resultOf(['token', 'revoke', 'a', 'b', '--token', SECRET], world)
    expect([exitCode, err]).toEqual([1, ['headwater: a valid access token is required (authn)']])
    expect(requests).toHaveLength(1)
  })

  it('goes on when one token is out of reach', async () => {
    const { hw, world } = await service()
    const scope = { accessTokens: { prefix: 'mine/' }, ops: ['revoke-access-token'] } as const
    const token = await hw.issueAccessToken({ id: 'mine/me', scope })
    await hw.issueAccessToken({ id: 'mine/other', scope })
    const { exitCode, out, err } = await resultOf(
      ['token', 'revoke', 'theirs', 'mine/other', '--token', token],
      world,
    )
    expect([exitCode, out]).toEqual([1, ['revoked mine/other']])
    expect(err[0]).toMatch(/^headwater: theirs: .* \(permission_denied\)$/)
  })

  it.each([
    [refusedConnection('ECONNREFUSED'), 'connection refused', ''],
    [refusedConnection('ENOTFOUND'), 'connect ENOTFOUND', ''],
    [
      refusedConnection('ECONNRESET'),
      'connect ECONNRESET',
      '. What was asked for may have been done all the same',
    ],
    [new TypeError('fetch failed'), 'fetch failed', '. What was asked for may have been done all the same'],
  ])('says what it cannot reach: %s', async (error, reason, doubt) => {
    const world = answering(() => Promise.reject(error))
    const message = `headwater: cannot reach http://there:1: ${reason}`
    expect((await resultOf([...LIST, '--url', 'http://there:1'], world)).err).toEqual([message])
    const { exitCode, err } = await resultOf([...ISSUE, '--url', 'http://there:1'], world)
    expect([exitCode, err]).toEqual([1, [`${message}${doubt}`]])
  })

  it('does not wait for ever', async () => {
    const clock = virtualClock()
    const fetch = (request: Request) =>
      new Promise<Response>((_, reject) => {
        request.signal.addEventListener('abort', () => reject(request.signal.reason))
      })
    const { exitCode, err } = run(LIST, { fetch, clock })
    await clock.advance('30s')
    expect(await exitCode).toBe(1)
    expect(err).toEqual(['headwater: cannot reach http://127.0.0.1:8787: no answer within 30 seconds'])
    expect(clock.pending).toBe(0)
  })

  it('leaves no timer behind', async () => {
    const clock = virtualClock()
    const world = { ...answering(() => Response.json({ access_tokens: [], has_more: false })), clock }
    expect((await resultOf(LIST, world)).exitCode).toBe(0)
    expect(clock.pending).toBe(0)
  })

  const URL = 'http://127.0.0.1:8787'
  it.each<[string, () => Response, string]>([
    [
      'an error',
      () => Response.json({ code: 'odd', message: 'no\u001b[2J' }, { status: 418 }),
      'no\\u{1b}[2J (odd)',
    ],
    [
      'a page of a proxy',
      () => new Response('<html>', { status: 502 }),
      `${URL} is no such service: it answered with status 502`,
    ],
    [
      'an error without a code',
      () => Response.json({ message: 'x' }, { status: 500 }),
      `${URL} is no such service: it answered with status 500`,
    ],
    [
      'a redirection',
      () => new Response(null, { status: 307, headers: { location: 'http://evil' } }),
      `${URL} is no such service: it answered with status 307`,
    ],
    [
      'no JSON',
      () => new Response('hello'),
      `${URL} is no such service: its answer is none to this question`,
    ],
    [
      'other JSON',
      () => Response.json({ access_tokens: [{ id: 1 }], has_more: false }),
      `${URL} is no such service: its answer is none to this question`,
    ],
    [
      'too much',
      () => new Response(new Uint8Array(16 * 1024 * 1024 + 1)),
      `${URL} is no such service: its answer is too long`,
    ],
    [
      'an endless list',
      () => Response.json({ access_tokens: [], has_more: true }),
      'the service lists tokens in no order',
    ],
    [
      'the same page again and again',
      () =>
        Response.json({
          access_tokens: [{ id: 'a', expires_at: null, auto_prefix_streams: false, scope: {} }],
          has_more: true,
        }),
      'the service lists tokens in no order',
    ],
  ])('copes with %s', async (_, answer, message) => {
    const { exitCode, out, err } = await resultOf(LIST, answering(answer))
    expect([exitCode, out, err]).toEqual([1, [], [`headwater: ${message}`]])
  })

  it.each([
    ['no token', {}],
    ['what is no token', { access_token: 'two\nlines' }],
  ])('prints no token when the answer holds %s', async (_, body) => {
    const { exitCode, out, err } = await resultOf(
      ISSUE,
      answering(() => Response.json(body, { status: 201 })),
    )
    expect([exitCode, out]).toEqual([1, []])
    expect(err).toEqual([`headwater: ${URL} is no such service: its answer is none to this question`])
  })

  it('shows operations that it does not know', async () => {
    const token = { id: 'a', expires_at: null, auto_prefix_streams: false, scope: { ops: ['levitate'] } }
    const world = answering(() => Response.json({ access_tokens: [token], has_more: false }))
    expect((await resultOf(LIST, world)).out[1]).toContain('levitate')
  })

  it('never sends its token elsewhere than asked', async () => {
    const requests: Request[] = []
    const fetch = async (request: Request) => {
      requests.push(request)
      return new Response(null, { status: 302, headers: { location: 'http://evil' } })
    }
    await resultOf(ISSUE, { fetch, env: { HEADWATER_TOKEN: SECRET } })
    expect(requests.map(({ redirect }) => redirect)).toEqual(['manual'])
  })
})
