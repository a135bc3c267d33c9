import { describe, expect, it } from 'vitest'
import { cursorsOf, offsetOf, parseStart } from '../../adapters/durable-streams/headers.ts'

// The published suite reads from offsets, and rejects those that are malformed.
describe('offsets', () => {
  it('have a second part that may be any number, and end with the largest sequence number', () => {
    // The Yjs server of the protocol's makers adds 1 to the second part.
    expect(parseStart('0000000000000001_0000000000000001')).toBe(1)
    expect(parseStart(offsetOf(Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER)
    expect(() => parseStart('9007199254740992_0000000000000000')).toThrow('beyond')
    expect(() => parseStart('-2')).toThrow('offset')
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
