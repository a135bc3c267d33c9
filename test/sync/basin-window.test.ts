import { describe, expect, it } from 'vitest'
import { windowOf } from '../../src/sync/basin-window.ts'

const none = { used: [], others: [], due: [], visited: [], stopped: new Set<string>(), slots: 3 }

describe('the window of a synced basin', () => {
  it('has the most recently used streams, and then the others', () => {
    expect(windowOf({ ...none, used: ['a', 'b', 'c', 'd'], others: ['e'] }).live).toEqual(['a', 'b', 'c'])
    expect(windowOf({ ...none, used: ['a'], others: ['e', 'f', 'g'] }).live).toEqual(['a', 'e', 'f'])
    expect(windowOf({ ...none, others: ['e'] }).live).toEqual(['e'])
    expect(windowOf(none)).toEqual({ live: [], visited: [] })
  })

  it('gives the last connection to a stream outside that is due', () => {
    const input = { ...none, used: ['a', 'b', 'c', 'd'], others: ['e'], due: ['e', 'd'] }
    expect(windowOf(input)).toEqual({ live: ['a', 'b'], visited: ['e'] })
    expect(windowOf({ ...input, slots: 1 })).toEqual({ live: [], visited: ['e'] })
  })

  it('lets a stream finish its turn before another one has its own', () => {
    const input = { ...none, used: ['a', 'b', 'c', 'd'], others: ['e'], due: ['d', 'e'], visited: ['e'] }
    expect(windowOf(input).visited).toEqual(['e'])
    expect(windowOf({ ...input, due: ['d'] }).visited).toEqual(['d'])
  })

  it('gives no connection away for a stream that has one', () => {
    const input = { ...none, used: ['a', 'b', 'c', 'd'] }
    expect(windowOf({ ...input, due: ['c'] })).toEqual({ live: ['a', 'b', 'c'], visited: [] })
  })

  it('gives the last connection back to the stream that it was taken from, if that is due too', () => {
    const input = { ...none, used: ['a', 'b', 'c', 'd'], due: ['d', 'c'] }
    expect(windowOf(input)).toEqual({ live: ['a', 'b'], visited: ['d'] })
    expect(windowOf({ ...input, due: ['c', 'd'] })).toEqual({ live: ['a', 'b'], visited: ['c'] })
  })

  it('visits stopped streams that are due, and keeps used ones beside the connections', () => {
    const input = { ...none, used: ['a', 'b', 'c', 'd'], others: ['e', 'f'], stopped: new Set(['a', 'e']) }
    expect(windowOf(input)).toEqual({ live: ['a', 'b', 'c', 'd'], visited: [] })
    expect(windowOf({ ...input, due: ['e'] })).toEqual({ live: ['a', 'b', 'c'], visited: ['e'] })
  })

  it('never has more streams than connections, none twice, and fills what is left', () => {
    for (let seed = 0; seed < 2_000; seed++) {
      const bit = (index: number) => ((seed * 2_654_435_761 + index * 40_503) >>> (index % 13)) & 1
      const names = Array.from('abcdefghij')
      const used = names.filter((_, index) => bit(index) === 1)
      const others = names.filter((name) => !used.includes(name))
      const due = names.filter((_, index) => bit(index + 20) === 1)
      const visited = due.filter((_, index) => bit(index + 40) === 1).slice(0, 2)
      const slots = 1 + (seed % 5)
      const { live, visited: next } = windowOf({ used, others, due, visited, stopped: new Set(), slots })
      const all = [...live, ...next]
      expect(new Set(all).size).toBe(all.length)
      expect(all.length).toBeLessThanOrEqual(slots)
      expect(live.length).toBeGreaterThanOrEqual(slots - 1)
      // Either all that are due have a connection, or one of them has its turn.
      expect(due.every((name) => live.includes(name)) || next.length > 0).toBe(true)
    }
  })
})
