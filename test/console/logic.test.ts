import { describe, expect, it, onTestFinished } from 'vitest'
import { Client } from '../../adapters/console/api/client.ts'
import { curlCommand } from '../../adapters/console/api/request.ts'
import { EventParser } from '../../adapters/console/api/sse.ts'
import { type ConsoleOptions, mountConsole } from '../../adapters/console/index.ts'
import { fragmentOf, routeOf } from '../../adapters/console/route.ts'
import { batchesOf, recordsOfJson, recordsOfLines } from '../../adapters/console/stream/append-input.ts'
import { trimEffect, withoutTrimmed } from '../../adapters/console/stream/commands.ts'
import { fixedStart, follow } from '../../adapters/console/stream/follow.ts'
import { decodeText, renderBody } from '../../adapters/console/stream/record.ts'
import { BYTES_MAX, RECORDS_MAX, RecordBuffer } from '../../adapters/console/stream/record-buffer.ts'
import {
  OPERATION_NAMES,
  OPERATION_WORDS,
  scopeSentences,
  scopeWarnings,
} from '../../adapters/console/tokens/scope-words.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { GROUP_OF } from '../../src/core/permission.ts'
import { open } from '../../src/index.ts'

const TARGET = { url: 'http://localhost:8787', basinUrl: undefined, headerPrefix: 'svc' }

describe('curl commands', () => {
  it('quote characters that a shell would interpret, and name the token by its variable', () => {
    const call = {
      method: 'POST',
      path: ['streams', "a/it's", 'records'],
      basin: 'shop',
      body: { records: [{ body: "'$HOME'" }] },
      encryptionKey: 'c2VjcmV0',
    } as const
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
    const target = { url: 'https://a.example', basinUrl: 'https://{basin}.b.example', headerPrefix: 's2' }
    const call = { method: 'DELETE', path: ['streams', 'x'], basin: 'shop' } as const
    expect(curlCommand(call, target, false)).toBe("curl -X DELETE 'https://shop.b.example/v1/streams/x'")
  })
})

describe('the parser of events', () => {
  it.each([1, 2, 3, 7, 1000])('accepts chunks of %i characters and every kind of line break', (size) => {
    const text = 'event: a\r\ndata: 1\ndata:2\r\rdata: [DONE]\n\n: comment\n\nevent: b\ndata: x\n\n'
    const parser = new EventParser()
    const events = []
    for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)))
    expect(events).toEqual([
      { event: 'a', data: '1\n2' },
      { event: 'message', data: '[DONE]' },
      { event: 'b', data: 'x' },
    ])
  })
})

describe('a body', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64')

  it.each([
    ['{"a":[1,{}],"b":"x, [y]: \\"z\\""}', undefined],
    ['[]', undefined],
    ['"text"', undefined],
    ['{"id":12345678901234567890}', '{\n  "id": 12345678901234567890\n}'],
    ['{"a":1,"a":2}', '{\n  "a": 1,\n  "a": 2\n}'],
  ])('is indented as JSON, unchanged otherwise: %s', (json, indented) => {
    const expected = indented ?? JSON.stringify(JSON.parse(json), null, 2)
    expect(renderBody(base64(json), 'json')).toEqual({ text: expected, isHex: false })
  })

  it.each(['{"a":', '['.repeat(200) + ']'.repeat(200)])(
    'that cannot be indented is shown as text',
    (text) => {
      expect(renderBody(base64(text), 'json')).toEqual({
        text,
        isHex: false,
        note: 'Not JSON, shown as text',
      })
    },
  )

  it('may be cut within a character', () => {
    const truncated = Buffer.from('aü').subarray(0, 2).toString('base64')
    expect(renderBody(truncated, 'text', true)).toEqual({ text: 'a', isHex: false })
    expect(renderBody(truncated, 'text').note).toBe('Not UTF-8, shown as hex')
    expect(renderBody(Buffer.from([97, 255, 98]).toString('base64'), 'text', true).isHex).toBe(true)
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

  it('of a JSON array keep the digits of their numbers', () => {
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
  const extent = { first: 10, tail: { seq_num: 20, timestamp: 0 } }
  it.each([
    [10, 'Nothing is removed: the first record is 10.'],
    [11, 'Removes 1 record: 10 to 10. 9 records and the trim command remain; 11 is the first.'],
    [20, 'Removes 10 records: 10 to 19. Only the trim command remains.'],
    [21, 'Removes all 10 records, and the trim command itself. The tail becomes 21.'],
  ])('before %i', (seqNum, effect) => {
    expect(trimEffect(extent, seqNum)).toBe(effect)
  })
})

it.each([
  [0, 10],
  [10, 10],
  [15, 15],
  [20, undefined],
  [21, undefined],
])('an extent after a trim to %i begins at %s', (trimPoint, first) => {
  const tail = { seq_num: 20, timestamp: 0 }
  expect(withoutTrimmed({ first: 10, tail }, trimPoint)).toEqual({ first, tail })
  expect(withoutTrimmed({ first: undefined, tail }, trimPoint)).toEqual({ first: undefined, tail })
})

describe('the scope of a token in words', () => {
  it('knows every operation and its group', () => {
    const groups = OPERATION_NAMES.map((name) => [name, OPERATION_WORDS[name].group])
    expect(Object.fromEntries(groups)).toEqual(GROUP_OF)
  })

  it('names resources and operations, of groups too', () => {
    const scope = {
      basins: { exact: 'shop' },
      streams: { prefix: '' },
      access_tokens: { prefix: 'tenant/' },
      op_groups: { stream: { read: true } },
      ops: ['list-basins', 'revoke-access-token'],
    }
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
    expect(scopeWarnings({ basins: { prefix: '' }, ops: ['read'] })).toEqual([
      'Operations on streams are selected, but no stream or no basin is.',
    ])
  })
})

describe('the buffer of a live tail', () => {
  const record = (seq_num: number, text: string) => ({
    seq_num,
    timestamp: 0,
    body: Buffer.from(text).toString('base64'),
  })

  it('keeps a number of records, of which a filter selects some', () => {
    const buffer = new RecordBuffer()
    buffer.add([record(0, 'odd'), record(1, 'even')])
    buffer.filter('ODD')
    expect([buffer.scan(), buffer.length]).toEqual([true, 1])
    expect([buffer.length, buffer.at(0)?.seq_num]).toEqual([1, 0])
    buffer.add(
      Array.from({ length: RECORDS_MAX }, (_, index) => record(index + 2, index % 2 ? 'odd' : 'even')),
    )
    expect(buffer.kept).toBe(RECORDS_MAX)
    expect(buffer.scan()).toBe(true)
    expect([buffer.length, buffer.at(0)?.seq_num, buffer.dropped]).toEqual([RECORDS_MAX / 2, 3, 1])
    expect([buffer.indexOf(5), buffer.indexOf(4)]).toEqual([1, -1])
    buffer.filter('')
    expect([buffer.length, buffer.at(0)?.seq_num]).toEqual([RECORDS_MAX, 2])
  })

  it('filters in portions', () => {
    const buffer = new RecordBuffer()
    buffer.add(Array.from({ length: 1000 }, (_, index) => record(index, 'odd')))
    buffer.filter('odd')
    let portions = 1
    while (!buffer.scan(() => true)) portions++
    expect([portions, buffer.length]).toEqual([16, 1000])
  })

  it('keeps a number of bytes', () => {
    const buffer = new RecordBuffer()
    const body = Buffer.alloc(1_048_576).toString('base64')
    const count = BYTES_MAX / 1_048_576 + 8
    for (let seq_num = 0; seq_num < count; seq_num++) buffer.add([{ seq_num, timestamp: 0, body }])
    expect(buffer.kept).toBe(BYTES_MAX / 1_048_576 - 1)
    expect(buffer.at(buffer.length - 1)?.seq_num).toBe(count - 1)
  })
})

describe('following a stream', () => {
  it('continues after lost connections without a gap or a repeat', async () => {
    const hw = await open({ storage: memory() })
    onTestFinished(() => hw.close())
    await hw.createBasin('basin-to-follow')
    await hw.basin('basin-to-follow').createStream('logs')
    const stream = hw.basin('basin-to-follow').stream('logs')
    await stream.append(['0', '1', '2'])
    const handler = createHandler(hw, { auth: 'none' })
    let connections = 0
    const client = new Client(async (request) => {
      const response = await handler(request)
      if (++connections === 4) return response
      if (connections === 2) throw new TypeError('network')
      // Breaks off after the first chunk.
      const reader = response.body!.getReader()
      const { value } = await reader.read()
      await reader.cancel()
      return new Response(value, { headers: response.headers })
    }, TARGET)
    const abort = new AbortController()
    onTestFinished(() => abort.abort())
    const bodies: string[] = []
    const states: string[] = []
    const following = follow(
      client,
      { basin: 'basin-to-follow', stream: 'logs', encryptionKey: '' },
      { kind: 'seq_num', value: 0 },
      {
        onBatch: ({ records }) => bodies.push(...records.map(({ body }) => decodeText(body))),
        onTail: () => {},
        onState: (state) => states.push(typeof state === 'string' ? state : 'retrying'),
      },
      abort.signal,
    )
    await expect.poll(() => connections).toBe(4)
    await stream.append('3')
    await expect.poll(() => bodies).toEqual(['0', '1', '2', '3'])
    expect(states).toContain('retrying')
    abort.abort()
    await following
  })

  it.each([
    [
      { kind: 'tail_offset', value: 3 },
      { kind: 'seq_num', value: 7 },
    ],
    [
      { kind: 'tail_offset', value: 30 },
      { kind: 'seq_num', value: 0 },
    ],
    // Records before the tail may still follow.
    [{ kind: 'seq_num', value: 5 }, undefined],
    [{ kind: 'timestamp', value: 5 }, undefined],
  ] as const)('from %j continues from %j once the tail is 10', (start, next) => {
    expect(fixedStart(start, { seq_num: 10, timestamp: 0 })).toEqual(next ?? start)
  })

  it('ends with an error at an address that is not a server of the protocol', async () => {
    const page = async () => new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } })
    const client = new Client(page, TARGET)
    const events = { onBatch: () => {}, onTail: () => {}, onState: () => {} }
    const target = { basin: 'basin-to-follow', stream: 'logs', encryptionKey: '' }
    const following = follow(
      client,
      target,
      { kind: 'seq_num', value: 0 },
      events,
      new AbortController().signal,
    )
    await expect(following).rejects.toThrow('this address does not speak the wire protocol')
    await expect(client.json({ method: 'GET', path: ['basins'] })).rejects.toThrow('the response is not JSON')
  })

  it('waits as long as an overloaded server requests', async () => {
    const busy = async () => new Response('{}', { status: 429, headers: { 'retry-after': '7' } })
    await expect(new Client(busy, TARGET).json({ method: 'GET', path: ['basins'] })).rejects.toMatchObject({
      isTransient: true,
      retryAfterMs: 7000,
    })
  })

  it('ends with the error of a stream that does not exist', async () => {
    const hw = await open({ storage: memory() })
    onTestFinished(() => hw.close())
    const client = new Client(createHandler(hw, { auth: 'none' }), TARGET)
    const events = { onBatch: () => {}, onTail: () => {}, onState: () => {} }
    const target = { basin: 'basin-to-follow', stream: 'logs', encryptionKey: '' }
    const start = { kind: 'tail_offset', value: 1 } as const
    await expect(follow(client, target, start, events, new AbortController().signal)).rejects.toMatchObject({
      status: 404,
      code: 'basin_not_found',
    })
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
  [{ fetch, url: 'localhost:8787' }, '`url` must be an http or https URL, not "localhost:8787"'],
  [{ fetch, basinUrl: '{basin}.example' }, '`basinUrl` must be an http or https URL, not "{basin}.example"'],
  [{ fetch, headerPrefix: 'S2-' }, '`headerPrefix` must be lower-case letters and digits'],
  [{ fetch, theme: 'blue' }, '`theme` must be one of system, light, dark'],
  [{ fetch, uri: '' }, 'unknown member `uri`; did you mean `url`?'],
])('rejects the options %j', (options, message) => {
  const mount = () => mountConsole({} as Element, options as unknown as ConsoleOptions)
  expect(mount).toThrow(expect.objectContaining({ code: 'invalid', message }))
})
