import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pathText } from '../../adapters/console/stream/json-tree.tsx'
import { matcherOf } from '../../adapters/console/stream/match.ts'
import { compares, parseQuery, type Query, quotedTerm } from '../../adapters/console/stream/query.ts'
import type { SequencedRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'

function record(
  body: string,
  headers: readonly (readonly [string, string])[] = [],
  { seqNum = 0, timestamp = 0 } = {},
): SequencedRecord {
  return {
    seqNum,
    timestamp,
    headers: headers.map(([name, value]) => [utf8(name), utf8(value)] as const),
    body: utf8(body),
  }
}

const selects = (query: string, one: SequencedRecord) => matcherOf(parseQuery(query))(one)

describe('a query', () => {
  const order = record(
    '{"id":12345678901234567890,"user":{"name":"Ann B","age":41},"items":[{"sku":"x"}],"error":null,"a.b":1}',
    [['tenant', 't3']],
    { seqNum: 7, timestamp: Date.parse('2026-03-01T12:00:00Z') },
  )

  it.each([
    ['', true],
    ['ann', true],
    ['ANN tenant=t3', true],
    ['"ann b"', true],
    ['"t=t3"', true],
    ['"t = t3"', false],
    ['"tenant=T3"', true],
    ['tenant=t', false],
    ['tenant~T', true],
    ['tenant!=t3', false],
    ['other!=t3', true],
    ['-tenant=t3', false],
    ['nothing OR tenant=t3', true],
    ['(nothing OR tenant=t3) .user.age>50', false],
    ['nothing OR tenant=t3 .user.age>=41', true],
    ['.user.name="Ann B"', true],
    ['.user.age>9', true],
    ['.user.age<9', false],
    ['.items[0].sku=x', true],
    ['.items[1].sku', false],
    ['.items.sku', false],
    ['."a.b"=1', true],
    ['.error', true],
    ['.error=null', true],
    ['.missing', false],
    ['-.missing', true],
    ['.id=12345678901234567890', true],
    ['.id=12345678901234567891', false],
    ['.id>12345678901234567889', true],
    ['@seq=7', true],
    ['@seq>7', false],
    ['@time>=2026-03-01T12:00:00Z @time<2026-03-01T12:00:01Z', true],
    ['@size>10', true],
    ['@command', false],
    ['OR-dered', false],
    ['user@example.com', false],
  ])('%s selects the record: %s', (query, expected) => {
    expect(selects(query, order)).toBe(expected)
  })

  it.each([
    ['(a', '“(” without “)”'],
    ['a)', '“)” without “(”'],
    ['"a', 'a quotation mark is missing'],
    ['a OR', 'OR needs a term on both sides'],
    ['@sequence>1', 'unknown @sequence: there are @seq, @time, @size, @command'],
    ['@time>noon', '@time: “noon” is not a time, such as 2026-01-31T12:00'],
  ])('%s has a problem', (query, message) => {
    expect(() => parseQuery(query)).toThrow(message)
  })

  it('nested 200 times has a problem', () => {
    expect(() => parseQuery('('.repeat(200))).toThrow('the query is nested too deeply')
  })

  it('is parsed or has a problem that people can read, whatever the text is', () => {
    const symbols = fc.constantFrom(...'ab.0[]()"\\=!<>~@-: \u00fcOR'.split(''), ' OR ', '.a', '@seq', '>=')
    const text = fc.oneof(
      fc.string(),
      fc.array(symbols, { maxLength: 30 }).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(text, (query) => {
        try {
          expect(typeof selects(query, order)).toBe('boolean')
        } catch (error) {
          expect((error as Error).constructor).toBe(Error)
        }
      }),
    )
  })

  it('finds every text in quotation marks that a body or a header contains', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.string(),
        fc.string({ minLength: 1 }),
        fc.boolean(),
        (a, b, text, inBody) => {
          const whole = `${a}${text}${b}`
          const one = inBody ? record(whole) : record('', [['name', whole]])
          const query = `"${text.toUpperCase().replace(/["\\]/g, '\\$&')}"`
          // Some letters have an upper case of another length, whose lower case differs.
          fc.pre(whole.toLowerCase().includes(text.toUpperCase().toLowerCase()))
          expect(selects(query, one)).toBe(true)
        },
      ),
    )
  })

  it('selects any value of any JSON by its path, as the page writes both', () => {
    const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>
    fc.assert(
      fc.property(json, (value) => {
        const one = record(JSON.stringify(value))
        for (const [path, leaf] of leavesOf(value, [])) {
          expect([pathText(path), selects(`${pathText(path)}=${quotedTerm(String(leaf))}`, one)]).toEqual([
            pathText(path),
            true,
          ])
        }
      }),
    )
  })

  it('is true exactly where its negation is false, and both of two are where each is', () => {
    const term = fc.constantFrom('a', 'b', 'h=1', 'h!=1', '.x>1', '.x<=1', '@seq>3', '.y', '-c', '(a OR b)')
    const one = fc.record({
      body: fc.constantFrom('a', 'b c', '{"x":1}', '{"x":2,"y":"a"}'),
      seqNum: fc.nat(6),
    })
    fc.assert(
      fc.property(term, term, one, fc.constantFrom('1', '2'), (first, second, { body, seqNum }, header) => {
        const tested = record(body, [['h', header]], { seqNum })
        const [a, b] = [selects(first, tested), selects(second, tested)]
        expect(selects(`-(${first})`, tested)).toBe(!a)
        expect(selects(`${first} ${second}`, tested)).toBe(a && b)
        expect(selects(`${first} OR ${second}`, tested)).toBe(a || b)
      }),
    )
  })

  it('compares integers of any length exactly, and other numbers as JavaScript does', () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.bigInt(), (a, b) => {
        expect([compares(`${a}`, '<', `${b}`), compares(`${a}`, '=', `${b}`)]).toEqual([a < b, a === b])
        expect(compares(`${a}`, '>=', `${b}`)).toBe(a >= b)
      }),
    )
    expect([compares('1.50', '=', '1.5'), compares('1e3', '>', '999'), compares('10', '<', '9a')]).toEqual([
      true,
      true,
      true,
    ])
  })

  it('has the parts that its text names', () => {
    expect(parseQuery('-a .b[0]."c d"!=1')).toEqual({
      kind: 'all',
      of: [
        { kind: 'not', of: { kind: 'text', text: 'a' } },
        {
          kind: 'not',
          of: { kind: 'value', of: 'json', path: ['b', 0, 'c d'], operator: '=', value: '1' },
        },
      ],
    } satisfies Query)
  })
})

/** The values of JSON that are neither arrays nor objects, with their paths. */
function leavesOf(value: unknown, path: (string | number)[]): [(string | number)[], unknown][] {
  if (typeof value !== 'object' || value === null) return [[path, value]]
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return entries.flatMap(([key, item]) => leavesOf(item, [...path, key as string | number]))
}
