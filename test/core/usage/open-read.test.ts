import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dueOperations } from '../../../src/core/usage/open-read.ts'

const OPENED = 600_000 + 30_000

describe('operations of a streaming read (wire-behaviour.md 11.3)', () => {
  it.each<[string, number, number, (readonly [number, number])[]]>([
    ['one when it opens', 0, 0, [[600, 1]]],
    ['no more within the first minute', 1, 59_999, []],
    ['one more after a full minute, in the minute in which that is', 1, 60_000, [[660, 1]]],
    [
      'each in its minute when they are told late',
      1,
      185_000,
      [
        [660, 1],
        [720, 1],
        [780, 1],
      ],
    ],
    ['only those that were not told', 3, 185_000, [[780, 1]]],
    ['none when the clock goes backwards', 1, -5_000, []],
  ])('%s', (_, counted, afterMs, due) => {
    expect(dueOperations({ openedAt: OPENED, counted }, OPENED + afterMs)).toEqual(due)
  })

  it('are as many however often they are told, and never many entries', () => {
    const gaps = fc.array(fc.nat(40 * 60_000_000), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(gaps, (gapsMs) => {
        let now = OPENED
        let counted = 0
        for (const gapMs of gapsMs) {
          now += gapMs
          const due = dueOperations({ openedAt: OPENED, counted }, now)
          expect(due.length).toBeLessThanOrEqual(60)
          for (const [minute] of due) expect(minute * 1000).toBeLessThanOrEqual(now)
          counted += due.reduce((sum, [, operations]) => sum + operations, 0)
        }
        expect(counted).toBe(1 + Math.floor((now - OPENED) / 60_000))
      }),
    )
  })
})
