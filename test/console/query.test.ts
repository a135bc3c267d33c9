import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compares, matcherOf, parseQuery, pathText, quotedTerm } from '../../adapters/console/stream/query.ts'
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
    ['.id=12345678901234567890', true],
    ['.id=12345678901234567891', false],
    ['.id>12345678901234567889', true],
    ['user@example.com', false],
    ['ann!', false],
    ['"id"', true],
    ['.id]', false],
  ])('%s selects the record: %s', (query, expected) => {
    expect(selects(query, order)).toBe(expected)
  })

  it('without an end of its quotation has a problem', () => {
    expect(() => parseQuery('a "b')).toThrow('a quotation mark is missing')
  })

  it('is parsed or has a problem that people can read, whatever the text is', () => {
    const symbols = fc.constantFrom(...'ab.0[]()"\\=!<>~@-: \u00fc'.split(''), '.a', '>=')
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

  it('has the terms that its text names', () => {
    expect(parseQuery('a .b[0]."c d"!=1 "h 1"~x')).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'json', path: ['b', 0, 'c d'], operator: '!=', value: '1' },
      { kind: 'header', path: ['h 1'], operator: '~', value: 'x' },
    ])
  })
})

/** The values of JSON that are neither arrays nor objects, with their paths. */
function leavesOf(value: unknown, path: (string | number)[]): [(string | number)[], unknown][] {
  if (typeof value !== 'object' || value === null) return [[path, value]]
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return entries.flatMap(([key, item]) => leavesOf(item, [...path, key as string | number]))
}
