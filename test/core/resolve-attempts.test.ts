import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Attempt, type AttemptOutcome, resolveAttempts } from '../../src/core/resolve-attempts.ts'

const session = {}
const of = (...kinds: Attempt['kind'][]): Attempt[] => kinds.map((kind) => ({ kind }))
const inSession = (...kinds: Attempt['kind'][]): Attempt[] => kinds.map((kind) => ({ kind, group: session }))

describe('the outcomes of attempts after a failure or conflict', () => {
  it.each<[string, Attempt[], boolean, AttemptOutcome[]]>([
    ['acknowledges written appends', of('written', 'queued'), true, ['acknowledge', 'retry']],
    ['retries after a conflict', of('conflicted', 'conflicted'), true, ['retry', 'retry']],
    [
      'fails the conflicts after a failure',
      of('failed', 'conflicted', 'failed'),
      true,
      ['fail', 'fail', 'fail'],
    ],
    [
      'retries a failure after a conflict, which wrote nothing',
      of('conflicted', 'failed', 'conflicted'),
      true,
      ['retry', 'retry', 'retry'],
    ],
    [
      'retries the same in a session, without discarding appends before the failure',
      inSession('conflicted', 'failed', 'queued'),
      false,
      ['retry', 'retry', 'retry'],
    ],
    [
      'acknowledges a failed append that a later one built on',
      of('failed', 'written', 'failed'),
      true,
      ['acknowledge', 'acknowledge', 'fail'],
    ],
    [
      'acknowledges durable appends after a rejection',
      of('written', 'refused', 'written', 'failed'),
      false,
      ['acknowledge', 'refuse', 'acknowledge', 'fail'],
    ],
    ['retries a rejection after an undecided append', of('conflicted', 'refused'), false, ['retry', 'retry']],
    ['retries a rejection after a failure', of('failed', 'refused'), false, ['fail', 'retry']],
    [
      'retries a rejection if others may have changed the stream',
      of('written', 'refused'),
      true,
      ['acknowledge', 'retry'],
    ],
    [
      'acknowledges a duplicate of what is durable',
      of('written', 'duplicate'),
      false,
      ['acknowledge', 'acknowledge'],
    ],
    [
      'retries a duplicate after an undecided append',
      of('conflicted', 'duplicate'),
      false,
      ['retry', 'retry'],
    ],
    [
      'retries a duplicate if others may have changed the stream',
      of('written', 'duplicate'),
      true,
      ['acknowledge', 'retry'],
    ],
    [
      'answers what a later append has found to be stored',
      of('duplicate', 'refused', 'written', 'failed'),
      true,
      ['acknowledge', 'refuse', 'acknowledge', 'fail'],
    ],
    [
      'keeps a final rejection',
      [{ kind: 'refused', isFinal: true }, ...of('queued')],
      true,
      ['refuse', 'retry'],
    ],
    [
      'acknowledges a failed append that a final duplicate follows',
      [...of('failed'), { kind: 'duplicate', isFinal: true }],
      true,
      ['acknowledge', 'acknowledge'],
    ],
    [
      'retries appends after a rejection in doubt',
      inSession('conflicted', 'refused', 'discarded'),
      false,
      ['retry', 'retry', 'retry'],
    ],
    [
      'discards appends after a final rejection in a session',
      inSession('written', 'refused', 'discarded'),
      false,
      ['acknowledge', 'refuse', 'discard'],
    ],
    [
      'discards appends after a failure in a session',
      inSession('failed', 'conflicted', 'refused', 'discarded'),
      true,
      ['fail', 'discard', 'discard', 'discard'],
    ],
    [
      'discards appends of a session that failed before',
      [{ kind: 'conflicted', group: session, groupHasFailed: true }],
      true,
      ['discard'],
    ],
  ])('%s', (_, attempts, shared, outcomes) => {
    expect(resolveAttempts(attempts, shared)).toEqual(outcomes)
  })

  it('never retries a durable append and never acknowledges an undecided one', () => {
    const kinds = ['queued', 'written', 'failed', 'conflicted', 'refused', 'discarded', 'duplicate'] as const
    const attempt = fc.record({
      kind: fc.constantFrom(...kinds),
      isFinal: fc.boolean(),
      group: fc.constantFrom(undefined, session),
    })
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 12 }), fc.boolean(), (attempts, shared) => {
        const outcomes = resolveAttempts(attempts, shared)
        const lastWritten = attempts.findLastIndex(
          ({ kind, isFinal }) => kind === 'written' || (kind === 'duplicate' && isFinal),
        )
        attempts.forEach(({ kind, isFinal }, index) => {
          const before = attempts.slice(0, index)
          const firstUnresolved = before.find((attempt, i) => {
            return attempt.kind === 'conflicted' || (attempt.kind === 'failed' && i > lastWritten)
          })
          const isKnown = index < lastWritten || (!shared && firstUnresolved === undefined)
          const isDurable =
            kind === 'written' ||
            (kind === 'failed' && index < lastWritten) ||
            (kind === 'duplicate' && (isFinal || isKnown))
          expect(outcomes[index] === 'acknowledge').toBe(isDurable)
          if (kind === 'failed' && firstUnresolved?.kind !== 'conflicted') {
            expect(outcomes[index]).not.toBe('retry')
          }
          if (kind === 'queued') expect(outcomes[index]).toBe('retry')
        })
      }),
    )
  })
})
