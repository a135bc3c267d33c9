import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Attempt, settle, type Verdict } from '../../src/engine/settlement.ts'

const session = {}
const of = (...outcomes: Attempt['outcome'][]): Attempt[] => outcomes.map((outcome) => ({ outcome }))
const inSession = (...outcomes: Attempt['outcome'][]): Attempt[] =>
  outcomes.map((outcome) => ({ outcome, group: session }))

describe('what can be told after trouble', () => {
  it.each<[string, Attempt[], boolean, Verdict[]]>([
    ['what was written', of('written', 'queued'), true, ['acknowledge', 'again']],
    ['a conflict is tried again', of('conflicted', 'conflicted'), true, ['again', 'again']],
    [
      'a failure fails the conflicts behind it',
      of('failed', 'conflicted', 'failed'),
      true,
      ['fail', 'fail', 'fail'],
    ],
    [
      'a failure behind a conflict wrote nothing, and never will',
      of('conflicted', 'failed', 'conflicted'),
      true,
      ['again', 'again', 'again'],
    ],
    [
      'the same in a session: what is before a failure is not discarded for it',
      inSession('conflicted', 'failed', 'queued'),
      false,
      ['again', 'again', 'again'],
    ],
    [
      'a failure that was built on was none',
      of('failed', 'written', 'failed'),
      true,
      ['acknowledge', 'acknowledge', 'fail'],
    ],
    [
      'durable appends behind a refusal',
      of('written', 'refused', 'written', 'failed'),
      false,
      ['acknowledge', 'refuse', 'acknowledge', 'fail'],
    ],
    ['a refusal behind what is open', of('conflicted', 'refused'), false, ['again', 'again']],
    ['a refusal behind a failure', of('failed', 'refused'), false, ['fail', 'again']],
    [
      'a refusal where others may have changed the stream',
      of('written', 'refused'),
      true,
      ['acknowledge', 'again'],
    ],
    ['a refusal for good', of('refused for good', 'queued'), true, ['refuse', 'again']],
    [
      'what a refusal in doubt kept from being made',
      inSession('conflicted', 'refused', 'discarded'),
      false,
      ['again', 'again', 'again'],
    ],
    [
      'what a refusal that stands kept from being made',
      inSession('written', 'refused', 'discarded'),
      false,
      ['acknowledge', 'refuse', 'discard'],
    ],
    [
      'what is behind a failure in a session',
      inSession('failed', 'conflicted', 'refused', 'discarded'),
      true,
      ['fail', 'fail', 'discard', 'discard'],
    ],
    [
      'a session that failed before',
      [{ outcome: 'conflicted', group: session, groupHasFailed: true }],
      true,
      ['discard'],
    ],
  ])('%s', (_, attempts, shared, verdicts) => {
    expect(settle(attempts, shared)).toEqual(verdicts)
  })

  it('never tries again what is durable, and never acknowledges what may not be', () => {
    const outcomes = [
      'queued',
      'written',
      'failed',
      'conflicted',
      'refused',
      'refused for good',
      'discarded',
    ] as const
    const attempt = fc.record({
      outcome: fc.constantFrom(...outcomes),
      group: fc.constantFrom(undefined, session),
    })
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 12 }), fc.boolean(), (attempts, shared) => {
        const verdicts = settle(attempts, shared)
        const lastWritten = attempts.findLastIndex(({ outcome }) => outcome === 'written')
        attempts.forEach(({ outcome }, index) => {
          const isDurable = outcome === 'written' || (outcome === 'failed' && index < lastWritten)
          expect(verdicts[index] === 'acknowledge').toBe(isDurable)
          const before = attempts.slice(0, index)
          const firstTrouble = before.find((one, i) => {
            return one.outcome === 'conflicted' || (one.outcome === 'failed' && i > lastWritten)
          })
          if (outcome === 'failed' && firstTrouble?.outcome !== 'conflicted') {
            expect(verdicts[index]).not.toBe('again')
          }
          if (outcome === 'queued') expect(verdicts[index]).toBe('again')
        })
      }),
    )
  })
})
