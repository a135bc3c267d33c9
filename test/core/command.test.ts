import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyCommand } from '../../src/core/sequence.ts'
import { INTEGER_MAX } from '../../src/model/limits.ts'

const at = (trimPoint: number) => ({ tail: { seqNum: 10, timestamp: 5 }, trimPoint, fencingToken: 'old' })

describe('trim', () => {
  // payload, sequence number of the command, trim point before, after
  it.each([
    ['0 does nothing', 0, 10, 0, 0],
    ['0 does nothing to a trimmed stream', 0, 10, 4, 4],
    ['below the trim point does nothing', 3, 10, 4, 4],
    ['at the trim point does nothing', 4, 10, 4, 4],
    ['above the trim point advances it', 5, 10, 4, 5],
    ['at the command keeps the command', 10, 10, 4, 10],
    ['after the command includes the command', 11, 10, 4, 11],
    ['far beyond the command stops after it', 12, 10, 4, 11],
    ['of everything stops after the command', INTEGER_MAX, 10, 4, 11],
    ['of everything as the first record', INTEGER_MAX, 0, 0, 1],
    ['of 0 as the first record', 0, 0, 0, 0],
    ['beyond the command never moves back', INTEGER_MAX, 10, 50, 50],
  ])('%s', (_, payload, seqNum, before, after) => {
    const state = at(before)
    expect(applyCommand(state, { kind: 'trim', seqNum: payload }, seqNum)).toEqual({
      ...state,
      trimPoint: after,
    })
  })

  it('never moves back and never exceeds the command', () => {
    const integer = fc.oneof(fc.nat(20), fc.maxSafeNat())
    fc.assert(
      fc.property(integer, integer, integer, (payload, seqNum, before) => {
        const { trimPoint } = applyCommand(at(before), { kind: 'trim', seqNum: payload }, seqNum)
        expect(trimPoint).toBeGreaterThanOrEqual(before)
        expect(trimPoint === before || trimPoint <= seqNum + 1).toBe(true)
      }),
    )
  })
})

describe('fence', () => {
  it.each(['new', 'old', ''])('sets the token %j and nothing else', (token) => {
    expect(applyCommand(at(3), { kind: 'fence', token }, 10)).toEqual({ ...at(3), fencingToken: token })
  })
})
