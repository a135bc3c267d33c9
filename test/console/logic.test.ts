import { describe, expect, it, onTestFinished } from 'vitest'
import { Connection } from '../../adapters/console/connection.ts'
import { formatDuration, formatTime, secondsOf } from '../../adapters/console/format.ts'
import { type ConsoleOptions, mountConsole } from '../../adapters/console/index.ts'
import { fragmentOf, routeOf } from '../../adapters/console/route.ts'
import { appendCall, curlCommand, readCall } from '../../adapters/console/snippets.ts'
import { recordsOfJson, recordsOfLines } from '../../adapters/console/stream/append.tsx'
import { type Format, renderBody } from '../../adapters/console/stream/body.ts'
import { trimEffect } from '../../adapters/console/stream/fence-and-trim.tsx'
import { scopeWords } from '../../adapters/console/tokens/scope.tsx'
import { accessScope } from '../../src/model/access.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { trimRecord } from '../../src/model/record.ts'

const TARGET = { url: 'http://localhost:8787', headerPrefix: 'svc' } as const

const shownAs = (as: Format) => ({ as, types: undefined, type: '' })

const STREAM = { basin: 'shop', stream: "a/it's", encryptionKey: '' }

describe('curl commands', () => {
  it('quote characters that a shell would interpret, and name the token by its variable', () => {
    const call = appendCall({ ...STREAM, encryptionKey: 'c2VjcmV0' }, [{ body: "'$HOME'" }], {})
    expect(curlCommand(call, { target: TARGET, isAuthorized: true })).toBe(
      [
        String.raw`curl 'http://localhost:8787/v1/streams/a%2Fit'\''s/records' \ `.trimEnd(),
        String.raw`  -H "authorization: Bearer $HEADWATER_TOKEN" \ `.trimEnd(),
        String.raw`  -H 'svc-basin: shop' \ `.trimEnd(),
        String.raw`  -H 'content-type: application/json' \ `.trimEnd(),
        String.raw`  -H "svc-encryption-key: $ENCRYPTION_KEY" \ `.trimEnd(),
        String.raw`  -d '{"records":[{"body":"'\''$HOME'\''"}]}'`,
      ].join('\n'),
    )
  })

  it('read one record', () => {
    const call = readCall({ ...STREAM, stream: 'x' }, { seqNum: 7, count: 1 })
    expect(curlCommand(call, { target: { ...TARGET, headerPrefix: 's2' }, isAuthorized: false })).toBe(
      "curl 'http://localhost:8787/v1/streams/x/records?seq_num=7&count=1' \\\n  -H 's2-basin: shop'",
    )
  })

  it('send commands in base64', () => {
    const command = curlCommand(appendCall(STREAM, [trimRecord(5)], { fencingToken: 'me' }), {
      target: TARGET,
      isAuthorized: false,
    })
    expect(command).toContain("-H 'svc-format: base64'")
    expect(command).toContain(
      '{"records":[{"headers":[["","dHJpbQ=="]],"body":"AAAAAAAAAAU="}],"fencing_token":"me"}',
    )
  })
})

describe('requests', () => {
  it('carry the token, and report that it was rejected', async () => {
    const tokens: (string | null)[] = []
    const fetch = async (request: Request) => {
      tokens.push(request.headers.get('authorization'))
      return Response.json({ code: 'authn', message: 'no' }, { status: 401 })
    }
    const connection = new Connection(fetch, TARGET, 'a-token')
    onTestFinished(() => connection.close())
    let rejected = 0
    connection.onUnauthorized = () => rejected++
    await expect(connection.hw.listBasins()).rejects.toMatchObject({ code: 'authn' })
    expect({ tokens, rejected }).toEqual({ tokens: ['Bearer a-token'], rejected: 1 })
  })
})

it.each([
  [0, '1970-01-01 00:00:00.000'],
  [253_402_300_800_000, '10000-01-01 00:00:00.000'],
  [8_640_000_000_000_001, '8640000000000001'],
])('the time %i is shown as %s', (utc, text) => {
  const offset = new Date(utc).getTimezoneOffset() || 0
  expect(formatTime(utc + offset * 60_000)).toBe(text)
})

it.each([
  ['7 days', 604_800],
  ['1 hour', 3600],
  ['90 minutes', 5400],
  ['1 second', 1],
])('the duration %s is %i seconds', (text, seconds) => {
  expect(secondsOf(text)).toBe(seconds)
  expect(secondsOf(formatDuration(seconds))).toBe(seconds)
  expect(secondsOf(` ${seconds}s `)).toBe(seconds)
})

it.each(['', '7', '0 days', '-1 days', '1.5 hours', 'ten days', '7 weeks', '99999999999999999 days'])(
  'rejects %j as a duration',
  (text) => {
    expect(secondsOf(text)).toBeUndefined()
  },
)

describe('a body', () => {
  it.each([
    '{"a":[1,{}],"b":"x, [y]: \\"z\\""}',
    '[]',
    '"text"',
    '{"id":12345678901234567890}',
    '{"a":1,"a":2}',
  ])('is a tree if it is JSON, which keeps every digit: %s', (json) => {
    const rendered = renderBody(utf8(` ${json}`), shownAs('auto'))
    expect(rendered.json?.text).toBe(json)
    expect(renderBody(utf8(json), shownAs('text')).json).toBeUndefined()
  })

  it.each(['{"a":', '['.repeat(200) + ']'.repeat(200), 'plain'])('that has no tree is text', (text) => {
    expect(renderBody(utf8(text), shownAs('auto'))).toEqual({ text, isHex: false, json: undefined })
  })

  it('may be cut within a character', () => {
    const truncated = utf8('aü').subarray(0, 2)
    expect(renderBody(truncated, shownAs('text'), true)).toEqual({ text: 'a', isHex: false, json: undefined })
    expect(renderBody(truncated, shownAs('text')).note).toBe('Not UTF-8, shown as hex')
    expect(renderBody(new Uint8Array([97, 255, 98]), shownAs('text'), true).isHex).toBe(true)
  })
})

describe('records to append', () => {
  it('are the lines of a text', () => {
    expect(recordsOfLines('a\r\n\nb\n')).toEqual([{ body: 'a' }, { body: '' }, { body: 'b' }])
    expect(recordsOfLines('')).toEqual([])
  })

  it('are the elements of a JSON array', () => {
    expect(recordsOfJson('["a", 1, {"b": 2}, {"body": "c"}]')).toEqual([
      { body: 'a' },
      { body: '1' },
      { body: '{"b":2}' },
      { body: '{"body":"c"}' },
    ])
    expect(() => recordsOfJson('{}')).toThrow('must be a JSON array')
    expect(() => recordsOfJson('[')).toThrow('must be a JSON array')
  })

  it('keep the digits of their numbers in a JSON array', () => {
    expect(recordsOfJson('[ {"id": 12345678901234567890, "x": [1.0, {}]}, 1e400, [ ] ]')).toEqual([
      { body: '{"id":12345678901234567890,"x":[1.0,{}]}' },
      { body: '1e400' },
      { body: '[]' },
    ])
  })
})

describe('the stated effect of a trim', () => {
  const extent = { first: 10, tail: 20 }
  it.each([
    [10, 'Nothing is removed: the first record is 10.'],
    [11, 'Removes 1 record: 10 to 10. 9 records and the trim command remain; 11 is the first.'],
    [20, 'Removes 10 records: 10 to 19. Only the trim command remains.'],
    [21, 'Removes all 10 records, and the trim command itself. The tail becomes 21.'],
  ])('before %i', (seqNum, effect) => {
    expect(trimEffect(extent, seqNum)).toBe(effect)
  })
})

describe('the scope of a token in words', () => {
  it('names resources and operations, of groups too', () => {
    const scope = accessScope({
      basins: { exact: 'shop' },
      streams: { prefix: '' },
      accessTokens: { prefix: 'tenant/' },
      opGroups: { stream: { read: true } },
      ops: ['list-basins', 'revoke-access-token'],
    })
    expect(scopeWords(scope)).toEqual({
      sentences: [
        'On every stream in the basin “shop”: read records, check the tail, see usage',
        'On the basin “shop”: list them',
        'On every access token that begins with “tenant/”: revoke',
      ],
      warnings: [],
    })
  })

  it('warns of operations without a resource', () => {
    expect(scopeWords(accessScope({ basins: { prefix: '' }, ops: ['read'] })).warnings).toEqual([
      'Operations on streams are selected, but no stream or no basin is.',
    ])
  })
})

it.each(['#/basins', '#/tokens', '#/basins/shop/usage', '#/basins/shop/streams/a%2Fb%20%25/append'])(
  'the fragment %s is a route',
  (fragment) => {
    expect(fragmentOf(routeOf(fragment))).toBe(fragment)
  },
)

it.each([
  [{}, '`fetch` is required, such as `createHandler(hw)`'],
  [{ fetch: 'no' }, '`fetch` must be a function'],
  [{ fetch, url: 'localhost:8787' }, '`url` must begin with http: or https:'],
  [{ fetch, headerPrefix: 'acme' }, '`headerPrefix` must be one of svc, s2'],
  [{ fetch, theme: 'blue' }, '`theme` must be one of system, light, dark'],
  [{ fetch, uri: '' }, 'unknown member `uri`; expected `fetch`, `url`, `headerPrefix`, `theme`'],
])('rejects the options %j', (options, message) => {
  const mount = () => mountConsole({} as Element, options as unknown as ConsoleOptions)
  expect(mount).toThrow(expect.objectContaining({ code: 'invalid', message }))
})
