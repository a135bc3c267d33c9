import { describe, expect, it } from 'vitest'
import { cursorsOf, offsetOf, parseOffset, parseStart } from '../../adapters/durable-streams/headers.ts'

describe('offsets', () => {
  it('sort as text in the order of their sequence numbers', () => {
    const numbers = [0, 1, 9, 10, 99, 1_000, 2 ** 40, Number.MAX_SAFE_INTEGER]
    const offsets = numbers.map(offsetOf)
    expect([...offsets].sort()).toEqual(offsets)
    expect(offsets.map((offset) => parseOffset(offset, 'offset'))).toEqual(numbers)
    for (const offset of offsets) expect(offset).toMatch(/^[^,&=?/]{1,255}$/)
  })

  it('accept the two sentinels, and nothing else', () => {
    expect(parseStart('-1')).toBe('beginning')
    expect(parseStart('now')).toBe('now')
    for (const text of ['', '0', '-2', 'NOW', `${offsetOf(1)} `, offsetOf(1).slice(1), `${offsetOf(1)}0`]) {
      expect(() => parseStart(text)).toThrow('offset')
    }
    // The Yjs server of the protocol's makers adds 1 to the second part.
    expect(parseStart('0000000000000001_0000000000000001')).toBe(1)
    expect(() => parseStart('9007199254740992_0000000000000000')).toThrow('beyond')
  })
})

describe('cursors', () => {
  const start = Date.UTC(2024, 9, 9)

  it('are greater than what the client sent, and never go back', () => {
    for (const random of [0, 0.5, 0.999]) {
      for (const sent of ['100', '101', '500']) {
        const cursors = cursorsOf(sent, start + 100 * 20_000, () => random)
        const first = Number(cursors(start + 100 * 20_000))
        expect(first).toBeGreaterThan(Number(sent))
        expect(Number(cursors(start + 200 * 20_000))).toBeGreaterThanOrEqual(first)
      }
    }
    expect(cursorsOf('99', start + 100 * 20_000, () => 0)(start + 100 * 20_000)).toBe('100')
  })
})
