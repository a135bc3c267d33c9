import { describe, expect, it, onTestFinished } from 'vitest'
import { Connection } from '../../adapters/console/connection.ts'
import { formatTime } from '../../adapters/console/format.ts'
import { type ConsoleOptions, mountConsole } from '../../adapters/console/index.ts'
import { fragmentOf, routeOf } from '../../adapters/console/route.ts'
import { appendCall, curlCommand, readCall } from '../../adapters/console/snippets.ts'
import { batchesOf, recordsOfJson, recordsOfLines } from '../../adapters/console/stream/append-input.ts'
import { type Format, renderBody } from '../../adapters/console/stream/body.ts'
import { trimEffect } from '../../adapters/console/stream/fence-and-trim.tsx'
import { OPERATION_NAMES, scopeSentences, scopeWarnings } from '../../adapters/console/tokens/scope-words.ts'
import { accessScope, OPERATIONS } from '../../src/model/access.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { trimRecord } from '../../src/model/record.ts'

const TARGET = { url: 'http://localhost:8787', basinUrl: undefined, headerPrefix: 'svc' } as const

const shownAs = (as: Format) => ({ as, types: undefined, type: '' })

const STREAM = { basin: 'shop', stream: "a/it's", encryptionKey: '' }

describe('curl commands', () => {
  it('quote characters that a shell would interpret, and name the token by its variable', () => {
    const call = appendCall({ ...STREAM, encryptionKey: 'c2VjcmV0' }, [{ body: "'$HOME'" }], {})
    expect(curlCommand(call, TARGET, true)).toBe(
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

  it('use the address of the basin where basins have one', () => {
    const target = {
      url: 'https://a.example',
      basinUrl: 'https://{basin}.b.example',
      headerPrefix: 's2',
    } as const
    const call = readCall({ ...STREAM, stream: 'x' }, { seqNum: 7, count: 1 })
    expect(curlCommand(call, target, false)).toBe(
      "curl 'https://shop.b.example/v1/streams/x/records?seq_num=7&count=1'",
    )
  })

  it('send commands in base64', () => {
    const command = curlCommand(appendCall(STREAM, [trimRecord(5)], { fencingToken: 'me' }), TARGET, false)
    expect(command).toContain("-H 'svc-format: base64'")
    expect(command).toContain(
      '{"records":[{"headers":[["","dHJpbQ=="]],"body":"AAAAAAAAAAU="}],"fencing_token":"me"}',
    )
  })
})

describe('requests', () => {
  it('go to the address of the basin where basins have one', async () => {
    const sent: string[] = []
    const fetch = async (request: Request) => {
      sent.push(`${request.method} ${request.url} ${request.headers.get('s2-basin')} ${await request.text()}`)
      return Response.json({ streams: [], basins: [], has_more: false, tail: { seq_num: 1, timestamp: 2 } })
    }
    const target = {
      url: 'https://a.example/',
      basinUrl: 'https://{basin}.b.example',
      headerPrefix: 's2',
    } as const
    const { hw } = new Connection(fetch, target)
    onTestFinished(() => hw.close())
    await hw.listBasins({ limit: 1 })
    await hw.basin('shop').stream('x').checkTail()
    await hw
      .basin('shop')
      .stream('x')
      .reconfigure({ timestamping: { mode: 'arrival' } })
      .catch(() => {})
    expect(sent).toEqual([
      'GET https://a.example/v1/basins?limit=1 null ',
      'GET https://shop.b.example/v1/streams/x/records/tail null ',
      'PATCH https://shop.b.example/v1/streams/x null {"timestamping":{"mode":"arrival"}}',
    ])
  })

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
    expect(recordsOfJson('["a", 1, {"b": 2}, {"body": "c", "headers": [["k", "v"]]}, {"body": 5}]')).toEqual([
      { body: 'a' },
      { body: '1' },
      { body: '{"b":2}' },
      { body: 'c', headers: [['k', 'v']] },
      { body: '{"body":5}' },
    ])
    expect(() => recordsOfJson('{}')).toThrow('must be a JSON array')
    expect(() => recordsOfJson('[')).toThrow('not JSON')
  })

  it('keep the digits of their numbers in a JSON array', () => {
    expect(recordsOfJson('[ {"id": 12345678901234567890, "x": [1.0, {}]}, 1e400, [ ] ]')).toEqual([
      { body: '{"id":12345678901234567890,"x":[1.0,{}]}' },
      { body: '1e400' },
      { body: '[]' },
    ])
  })

  it('are divided into batches within the limits', () => {
    const small = Array.from({ length: 2001 }, () => ({ body: 'x' }))
    expect(batchesOf(small).map(({ length }) => length)).toEqual([1000, 1000, 1])
    const large = { body: 'ü'.repeat(300_000) }
    expect(batchesOf([large, large, large]).map(({ length }) => length)).toEqual([1, 1, 1])
    expect(() => batchesOf([{ body: 'x'.repeat(1_048_576) }])).toThrow(
      'record 1 has 1048584 metered bytes; the limit is 1048576',
    )
  })
})

describe('the stated effect of a trim', () => {
  const extent = { first: 10, tail: { seqNum: 20, timestamp: 0 } }
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
  it('knows every operation', () => {
    expect([...OPERATION_NAMES].sort()).toEqual([...OPERATIONS].sort())
  })

  it('names resources and operations, of groups too', () => {
    const scope = accessScope({
      basins: { exact: 'shop' },
      streams: { prefix: '' },
      accessTokens: { prefix: 'tenant/' },
      opGroups: { stream: { read: true } },
      ops: ['list-basins', 'revoke-access-token'],
    })
    expect(scopeSentences(scope)).toEqual([
      {
        where: 'On every stream in the basin “shop”',
        verbs: ['read records', 'check the tail', 'see usage'],
      },
      { where: 'On the basin “shop”', verbs: ['list them'] },
      { where: 'On every access token that begins with “tenant/”', verbs: ['revoke'] },
    ])
    expect(scopeWarnings(scope)).toEqual([])
  })

  it('warns of operations without a resource', () => {
    expect(scopeWarnings(accessScope({ basins: { prefix: '' }, ops: ['read'] }))).toEqual([
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
  [{ fetch, basinUrl: '{basin}.example' }, '`basinUrl` must be an http or https URL, not "{basin}.example"'],
  [{ fetch, headerPrefix: 'acme' }, '`headerPrefix` must be one of svc, s2'],
  [{ fetch, theme: 'blue' }, '`theme` must be one of system, light, dark'],
  [{ fetch, uri: '' }, 'unknown member `uri`; did you mean `url`?'],
])('rejects the options %j', (options, message) => {
  const mount = () => mountConsole({} as Element, options as unknown as ConsoleOptions)
  expect(mount).toThrow(expect.objectContaining({ code: 'invalid', message }))
})
