import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideDeleteOnEmpty } from '../../src/core/lifetime.ts'
import { isBlockExpired, recordsExpireAt } from '../../src/core/retention.ts'
import { INTEGER_MAX } from '../../src/model/limits.ts'

describe('expiry of records', () => {
  it.each([
    ['infinite' as const, 1000, null],
    [{ ageSeconds: 1 }, 1000, 2000],
    [{ ageSeconds: 604_800 }, 0, 604_800_000],
    [{ ageSeconds: INTEGER_MAX }, 1000, INTEGER_MAX],
  ])('under %j, appended at %d: %s', (policy, appendedAt, expiresAt) => {
    expect(recordsExpireAt(policy, appendedAt)).toBe(expiresAt)
  })

  it.each([
    [null, INTEGER_MAX, false],
    [2000, 1999, false],
    [2000, 2000, true],
    [2000, 2001, true],
  ])('at %s is over at %d: %s', (expiresAt, now, expected) => {
    expect(isBlockExpired(expiresAt, now)).toBe(expected)
  })
})

describe('delete-on-empty', () => {
  const stream = (minAgeSeconds: number, hasRecords: boolean, lastWriteAt: number) => ({
    minAgeSeconds,
    hasRecords,
    lastWriteAt,
  })
  it.each([
    ['is off with an age of 0', stream(0, false, 0), INTEGER_MAX, null],
    ['is off with an age of 0 and records', stream(0, true, 0), INTEGER_MAX, null],
    ['waits for the age', stream(10, false, 5000), 14_999, { checkAt: 15_000 }],
    ['deletes at the age', stream(10, false, 5000), 15_000, 'delete'],
    ['deletes after the age', stream(10, false, 5000), 99_999, 'delete'],
    [
      'keeps a stream with records and checks again after at least its age',
      stream(90, true, 0),
      1,
      { checkAt: 90_001 },
    ],
    ['checks again after another age', stream(90, true, 0), 500_000, { checkAt: 590_000 }],
    ['checks again after at most an hour', stream(9000, true, 0), 500_000, { checkAt: 4_100_000 }],
    ['checks again sooner if the age is shorter', stream(10, true, 0), 500_000, { checkAt: 510_000 }],
    [
      'checks first after an hour, however long the age',
      stream(INTEGER_MAX, false, 0),
      1000,
      { checkAt: 3_601_000 },
    ],
  ])('%s', (_, given, now, decision) => {
    expect(decideDeleteOnEmpty(given, now)).toEqual(decision)
  })

  it('deletes exactly if the stream is empty and was idle for the age, and never schedules a check in the past', () => {
    const time = fc.oneof(fc.nat(100_000), fc.integer({ min: 0, max: 2 ** 45 }))
    const age = fc.oneof(fc.nat(100), fc.maxSafeNat())
    fc.assert(
      fc.property(age, fc.boolean(), time, time, (minAgeSeconds, hasRecords, lastWriteAt, idleMs) => {
        const now = lastWriteAt + idleMs
        const decision = decideDeleteOnEmpty({ minAgeSeconds, hasRecords, lastWriteAt }, now)
        const expected = minAgeSeconds > 0 && !hasRecords && idleMs >= minAgeSeconds * 1000
        expect(decision === 'delete').toBe(expected)
        if (typeof decision === 'object' && decision !== null) {
          expect(decision.checkAt).toBeGreaterThan(now)
          expect(Number.isSafeInteger(decision.checkAt)).toBe(true)
        }
      }),
    )
  })
})
