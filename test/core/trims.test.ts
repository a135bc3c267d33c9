import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addTrim, reclaimablePoint, type Trim } from '../../src/core/retention.ts'

const GRACE_MS = 10

/** Advancing trims in the order of their times, few or many within one grace. */
const history = fc
  .constantFrom(3, 2 * GRACE_MS)
  .chain((gapMsMax) =>
    fc.array(fc.record({ step: fc.integer({ min: 1, max: 5 }), gapMs: fc.nat(gapMsMax) }), {
      maxLength: 40,
      size: 'max',
    }),
  )
  .map((specs) => {
    let point = 0
    let at = 100
    return specs.map(({ step, gapMs }): Trim => {
      point += step
      at += gapMs
      return { point, at }
    })
  })

function trimsAfter(trims: readonly Trim[]): readonly Trim[] {
  return trims.reduce<readonly Trim[]>((all, trim) => addTrim(all, trim, GRACE_MS), [])
}

describe('trims within their grace', () => {
  it('are at most three, ascending, including the newest', () => {
    fc.assert(
      fc.property(history, (trims) => {
        const all = trimsAfter(trims)
        expect(all.length).toBeLessThanOrEqual(3)
        expect(all.at(-1)).toEqual(trims.at(-1))
        expect(all).toEqual(all.toSorted((a, b) => a.point - b.point))
      }),
    )
  })

  it('never free records within their grace', () => {
    fc.assert(
      fc.property(history, fc.nat(700), (trims, before) => {
        expect(reclaimablePoint(trimsAfter(trims), before)).toBeLessThanOrEqual(
          reclaimablePoint(trims, before),
        )
      }),
    )
  })

  it('free everything after the grace of the newest', () => {
    fc.assert(
      fc.property(history, (trims) => {
        const last = trims.at(-1) ?? { point: 0, at: 0 }
        expect(reclaimablePoint(trimsAfter(trims), last.at)).toBe(last.point)
      }),
    )
  })

  it('free records within two graces, even if the stream is trimmed continuously', () => {
    fc.assert(
      fc.property(history, fc.nat(3 * GRACE_MS), (trims, laterMs) => {
        for (let count = 1; count <= trims.length; count++) {
          const applied = trims.slice(0, count)
          const now = applied.at(-1)!.at + laterMs
          const freed = reclaimablePoint(trimsAfter(applied), now - GRACE_MS)
          expect(freed).toBeGreaterThanOrEqual(reclaimablePoint(applied, now - 2 * GRACE_MS))
        }
      }),
    )
  })

  it('are absent from a stream that was never trimmed', () => {
    expect(reclaimablePoint([], 1e9)).toBe(0)
  })
})
