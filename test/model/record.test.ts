import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { type Header, meteredBytesOf } from '../../src/model/record.ts'

const header = (name: string, value: string): Header => [utf8(name), utf8(value)]

describe('the metered size', () => {
  it.each<[string, Header[], Uint8Array, number]>([
    ['an empty record', [], utf8(''), 8],
    ['a body', [], utf8('hello'), 13],
    ['a body in bytes, not characters', [], utf8('é😀'), 14],
    ['a header without name and value', [header('', '')], utf8(''), 10],
    ['a header', [header('name', 'value')], utf8(''), 19],
    ['repeated headers', [header('a', 'b'), header('a', 'b')], utf8('c'), 17],
    ['a trim command', [header('', 'trim')], new Uint8Array(8), 22],
    ['a fence command that clears', [header('', 'fence')], utf8(''), 15],
    ['a fence command', [header('', 'fence')], utf8('token'), 20],
  ])('%s', (_, headers, body, bytes) => {
    expect(meteredBytesOf(headers, body)).toBe(bytes)
  })

  it('is 8, plus 2 for each header, plus the length of every part', () => {
    const bytes = fc.uint8Array({ maxLength: 50 })
    fc.assert(
      fc.property(fc.array(fc.tuple(bytes, bytes), { maxLength: 20 }), bytes, (headers, body) => {
        const parts = [...headers.flat(), body].map((part) => part.length)
        const lengths = parts.reduce((sum, length) => sum + length, 0)
        expect(meteredBytesOf(headers, body)).toBe(8 + 2 * headers.length + lengths)
      }),
    )
  })
})
