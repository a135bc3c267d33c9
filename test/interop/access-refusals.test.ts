import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Raw } from '../node/raw.ts'
import { serviceOfFile } from './support.ts'

const service = await serviceOfFile({ demandsTokens: true })
const { hw } = service
const { url, port } = service.server

/** Permits something on `acme-main`, but none of the calls of these tests. */
let locations: string
/** Permits everything on the streams below `logs/` in `acme-main`. */
let logs: string
/** Permits nothing, because it was revoked. */
let revoked: string

beforeAll(async () => {
  for (const basin of ['acme-main', 'other-main']) {
    await hw.createBasin(basin)
    for (const stream of ['logs/main', 'audit/main']) await hw.basin(basin).createStream(stream)
  }
  await hw.issueAccessToken({ id: 'team/one', scope: { ops: ['read'] } })
  const streams = { prefix: 'logs/' }
  const BOTH = { read: true, write: true }
  const opGroups = { account: BOTH, basin: BOTH, stream: BOTH }
  const scope = { basins: { exact: 'acme-main' }, streams, accessTokens: { exact: 'nobody' }, opGroups }
  logs = await hw.issueAccessToken({ id: 'logs', scope })
  revoked = await hw.issueAccessToken({ id: 'revoked', scope })
  await hw.revokeAccessToken('revoked')
  locations = await hw.issueAccessToken({
    id: 'locations',
    scope: { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['list-locations'] },
  })
})

interface Target {
  readonly method: string
  readonly path: string
  readonly basin?: string
  readonly contentType?: string
}

const RECORDS = '/v1/streams/logs%2Fmain/records'
const IN_MAIN = { basin: 'acme-main' }
/** Every request with a body. */
const WITH_BODY: readonly Target[] = [
  { method: 'POST', path: '/v1/basins' },
  { method: 'PUT', path: '/v1/basins/acme-main' },
  { method: 'PATCH', path: '/v1/basins/acme-main' },
  { method: 'POST', path: '/v1/access-tokens' },
  { method: 'PUT', path: '/v1/locations/default' },
  { method: 'POST', path: '/v1/streams', ...IN_MAIN },
  { method: 'PUT', path: '/v1/streams/logs%2Fmain', ...IN_MAIN },
  { method: 'PATCH', path: '/v1/streams/logs%2Fmain', ...IN_MAIN },
  { method: 'POST', path: RECORDS, ...IN_MAIN },
  { method: 'POST', path: RECORDS, ...IN_MAIN, contentType: 'application/protobuf' },
  { method: 'POST', path: RECORDS, ...IN_MAIN, contentType: 's2s/proto' },
]

function headersOf(
  { basin, contentType = 'application/json' }: Target,
  token?: string,
): Record<string, string> {
  return {
    'content-type': contentType,
    ...(basin !== undefined && { 's2-basin': basin }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
}

const UNAUTHORIZED = { status: 401, body: '{"code":"authn","message":"a valid access token is required"}' }
const FORBIDDEN = {
  status: 403,
  body: '{"code":"permission_denied","message":"the access token does not permit this"}',
}
const REFUSALS = [
  ['no token', () => undefined, UNAUTHORIZED],
  ['a revoked token', () => revoked, UNAUTHORIZED],
  ['a token that does not permit it', () => locations, FORBIDDEN],
] as const

const titled = <Targets extends readonly [Target, ...Target[]]>(
  targets: Targets,
): [title: string, targets: Targets] => [
  targets
    .map(({ method, path, basin = '', contentType = '' }) =>
      [method, path, basin, contentType].join(' ').trim(),
    )
    .join(' and '),
  targets,
]

describe.each(REFUSALS)('with %s the response precedes the body', (_, tokenOf, expected) => {
  it.each(WITH_BODY.map((target) => titled([target])))('%s, by HTTP/1.1', async (_, [target]) => {
    for (const length of ['content-length: 1000', 'transfer-encoding: chunked']) {
      const fields = Object.entries(headersOf(target, tokenOf())).map(([name, value]) => `${name}: ${value}`)
      const head = [`${target.method} ${target.path} HTTP/1.1`, 'host: localhost', length, ...fields]
      // The request declares a body that never arrives.
      const raw = new Raw(port).send(`${head.join('\r\n')}\r\n\r\n`)
      expect(await raw.response()).toMatchObject(expected)
    }
  })

  let session: ClientHttp2Session
  beforeAll(() => {
    session = connect(url)
  })
  afterAll(() => void session.destroy())

  it.each(WITH_BODY.map((target) => titled([target])))('%s, by HTTP/2', async (_, [target]) => {
    const { method, path } = target
    const pseudo = { ':method': method, ':path': path }
    const stream = session.request({ ...pseudo, ...headersOf(target, tokenOf()) }, { endStream: false })
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    let body = ''
    for await (const chunk of stream.setEncoding('utf8')) body += chunk
    expect({ status: headers[':status'], body }).toEqual(expected)
    stream.destroy()
  })
})

describe('a rejection', () => {
  /** Calls about something that exists, and the same calls about something that does not. */
  const PAIRS: readonly (readonly [there: Target, missing: Target])[] = [
    ['GET', 'PUT', 'PATCH', 'DELETE'].map((method) => ({ method, path: '/v1/basins/*' })),
    [{ method: 'DELETE', path: '/v1/access-tokens/*' }],
    [{ method: 'GET', path: '/v1/metrics/*?set=storage&start=0&end=60' }],
    [{ method: 'GET', path: '/v1/metrics/*/s?set=storage&start=0&end=60' }],
  ]
    .flat()
    .map((target) => {
      const isToken = target.path.includes('access-tokens')
      const named = (name: string) => ({ ...target, path: target.path.replace('*', name) })
      return isToken
        ? ([named('team%2Fone'), named('team%2Fgone')] as const)
        : ([named('other-main'), named('other-gone')] as const)
    })

  const STREAM_TARGETS: readonly Target[] = [
    { method: 'GET', path: '' },
    { method: 'PUT', path: '' },
    { method: 'PATCH', path: '' },
    { method: 'DELETE', path: '' },
    { method: 'POST', path: '/records' },
    { method: 'POST', path: '/records', contentType: 's2s/proto' },
    { method: 'GET', path: '/records?seq_num=0' },
    { method: 'GET', path: '/records?seq_num=0', contentType: 's2s/proto' },
    { method: 'GET', path: '/records/tail' },
  ]
  const STREAM_PAIRS = STREAM_TARGETS.flatMap((target) => {
    const targetOf = (stream: string, basin: string) => ({
      ...target,
      path: `/v1/streams/${encodeURIComponent(stream)}${target.path}`,
      basin,
    })
    return [
      [targetOf('audit/main', 'acme-main'), targetOf('audit/gone', 'acme-main')],
      [targetOf('logs/main', 'other-main'), targetOf('logs/gone', 'other-main')],
      [targetOf('logs/main', 'other-main'), targetOf('logs/main', 'other-gone')],
    ] as const
  })
  const LIST_PAIR = [
    { method: 'GET', path: '/v1/streams', basin: 'other-main' },
    { method: 'GET', path: '/v1/streams', basin: 'other-gone' },
  ] as const

  /** A response without its date. */
  async function answer(target: Target, token?: string) {
    const { method, path } = target
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: '{}' }
    const response = await fetch(`${url}${path}`, { method, headers: headersOf(target, token), ...body })
    const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== 'date'))
    return { status: response.status, body: await response.text(), headers }
  }

  it.each([...PAIRS, ...STREAM_PAIRS, LIST_PAIR].map(titled))(
    'rejects %s alike',
    async (_, [existing, missing]) => {
      for (const [token, expected] of [
        [undefined, UNAUTHORIZED],
        [revoked, UNAUTHORIZED],
        [logs, FORBIDDEN],
        [locations, FORBIDDEN],
      ] as const) {
        const response = await answer(existing, token)
        expect(response).toMatchObject(expected)
        expect(await answer(missing, token)).toEqual(response)
      }
    },
  )

  it('precedes the validation of a malformed request', async () => {
    for (const target of [
      { method: 'GET', path: '/v1/streams/%ff/records', basin: 'acme-main' },
      { method: 'GET', path: '/v1/streams/s/records?seq_num=x', basin: 'acme-main' },
      { method: 'GET', path: '/v1/streams/s/records', basin: 'NOT A BASIN' },
      { method: 'GET', path: '/v1/streams/s/records' },
      { method: 'PUT', path: '/v1/basins/NO-BASIN' },
    ]) {
      expect(await answer(target)).toMatchObject(UNAUTHORIZED)
      expect(await answer(target, locations)).toMatchObject(FORBIDDEN)
    }
  })
})
