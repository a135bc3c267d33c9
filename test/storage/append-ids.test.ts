import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AppendIds } from '../../src/storage/append-ids.ts'

describe('append ids as two numbers', () => {
  const id = fc
    .tuple(
      fc.constantFrom('', 'a:', 'a:0', 'b:', '7'),
      fc.constantFrom('', '0', '007', '1', '42', '9'.repeat(20)),
    )
    .map(([prefix, suffix]) => prefix + suffix)

  test('stand for the id that was parsed, and for no other', () => {
    const ids = new AppendIds()
    fc.assert(
      fc.property(id, id, (one, other) => {
        if (!ids.parse(one)) return
        const { prefix, count } = ids
        expect(ids.idOf(prefix, count)).toBe(one)
        expect(ids.isSame(one, prefix, count)).toBe(true)
        expect(ids.isSame(other, prefix, count)).toBe(one === other)
        if (ids.parse(other)) expect(ids.prefix === prefix && ids.count === count).toBe(one === other)
      }),
    )
  })

  test('share at most 255 prefixes', () => {
    const ids = new AppendIds()
    const parsed = Array.from({ length: 1_000 }, (_, engine) => ids.parse(`engine-${engine}:1`))
    expect(parsed.filter((isParsed) => isParsed)).toHaveLength(255)
    expect(ids.parse('engine-0:2')).toBe(true)
  })
})
