import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Attempt, resolveAttempts } from '../../src/core/resolve-attempts.ts'

const session = { failed: false }

/** The attempts that a text names, `!` after those that are final. Those of a session fail together. */
function attemptsOf(text: string, group?: Attempt['group']): Attempt[] {
  return text.split(' ').map((word) => {
    const kind = word.replace('!', '') as Attempt['state']['kind']
    return { state: { kind, isFinal: word.endsWith('!') }, group }
  })
}

describe('the outcomes of attempts after a failure or conflict', () => {
  // what is decided, attempts, whether others may have changed the stream, outcomes
  it.each([
    ['acknowledges written appends', 'written queued', true, 'acknowledge retry'],
    ['retries after a conflict', 'conflicted conflicted', true, 'retry retry'],
    ['fails the conflicts after a failure', 'failed conflicted failed', true, 'fail fail fail'],
    [
      'retries a failure after a conflict, which wrote nothing',
      'conflicted failed conflicted',
      true,
      'retry retry retry',
    ],
    [
      'acknowledges a failed append that a later one built on',
      'failed written failed',
      true,
      'acknowledge acknowledge fail',
    ],
    [
      'acknowledges durable appends after a rejection',
      'written refused written failed',
      false,
      'acknowledge refuse acknowledge fail',
    ],
    ['retries a rejection after an undecided append', 'conflicted refused', false, 'retry retry'],
    ['retries a rejection after a failure', 'failed refused', false, 'fail retry'],
    ['retries a rejection if others may have appended', 'written refused', true, 'acknowledge retry'],
    ['acknowledges a duplicate of what is durable', 'written duplicate', false, 'acknowledge acknowledge'],
    ['retries a duplicate after an undecided append', 'conflicted duplicate', false, 'retry retry'],
    ['retries a duplicate if others may have appended', 'written duplicate', true, 'acknowledge retry'],
    [
      'answers what a later append has found to be stored',
      'duplicate refused written failed',
      true,
      'acknowledge refuse acknowledge fail',
    ],
    ['keeps a final rejection', 'refused! queued', true, 'refuse retry'],
    [
      'acknowledges a failed append that a final duplicate follows',
      'failed duplicate!',
      true,
      'acknowledge acknowledge',
    ],
  ])('%s', (_, attempts, shared, outcomes) => {
    expect(resolveAttempts(attemptsOf(attempts), shared).join(' ')).toBe(outcomes)
  })

  it.each([
    [
      'retries a failure after a conflict, and discards nothing before it',
      'conflicted failed queued',
      false,
      'retry retry retry',
    ],
    [
      'retries appends after a rejection in doubt',
      'conflicted refused discarded',
      false,
      'retry retry retry',
    ],
    [
      'discards appends after a final rejection',
      'written refused discarded',
      false,
      'acknowledge refuse discard',
    ],
    [
      'discards appends after a failure',
      'failed conflicted refused discarded',
      true,
      'fail discard discard discard',
    ],
  ])('%s in a session', (_, attempts, shared, outcomes) => {
    expect(resolveAttempts(attemptsOf(attempts, session), shared).join(' ')).toBe(outcomes)
  })

  it('discards appends of a session that failed before', () => {
    const attempt: Attempt = { state: { kind: 'conflicted' }, group: { failed: true } }
    expect(resolveAttempts([attempt], true)).toEqual(['discard'])
  })

  it('never retries a durable append and never acknowledges an undecided one', () => {
    const kinds = ['queued', 'written', 'failed', 'conflicted', 'refused', 'discarded', 'duplicate'] as const
    const attempt = fc.record({
      state: fc.record({ kind: fc.constantFrom(...kinds), isFinal: fc.boolean() }),
      group: fc.constantFrom(undefined, session),
    })
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 12 }), fc.boolean(), (attempts, shared) => {
        const outcomes = resolveAttempts(attempts, shared)
        const lastWritten = attempts.findLastIndex(
          ({ state: { kind, isFinal } }) => kind === 'written' || (kind === 'duplicate' && isFinal),
        )
        attempts.forEach(({ state: { kind, isFinal } }, index) => {
          const before = attempts.slice(0, index)
          const firstUnresolved = before.find(({ state }, i) => {
            return state.kind === 'conflicted' || (state.kind === 'failed' && i > lastWritten)
          })
          const isKnown = index < lastWritten || (!shared && firstUnresolved === undefined)
          const isDurable =
            kind === 'written' ||
            (kind === 'failed' && index < lastWritten) ||
            (kind === 'duplicate' && (isFinal || isKnown))
          expect(outcomes[index] === 'acknowledge').toBe(isDurable)
          if (kind === 'failed' && firstUnresolved?.state.kind !== 'conflicted') {
            expect(outcomes[index]).not.toBe('retry')
          }
          if (kind === 'queued') expect(outcomes[index]).toBe('retry')
        })
      }),
    )
  })
})
