import { describe, expect, it } from 'vitest'
import { checkLives, LifeHistory, type LifePage } from './check-lives.ts'

const GRACE = { trimMs: 10, expiryMs: 10 }

/** A stream with the records a and b that is deleted from 100 to 110, and again created with c by 130. */
function historyOf(change: (history: LifeHistory) => void): LifeHistory {
  const history = new LifeHistory()
  history.lives.push(
    { created: { from: 0, to: 1 }, deleted: { from: 100, to: 110 }, ageMs: undefined },
    { created: { from: 110, to: 120 }, ageMs: undefined },
  )
  history.appends.push(
    { from: 2, to: 3, bodies: ['a', 'b'], outcome: { kind: 'appended', start: 0, end: 2, tail: 2 } },
    { from: 121, to: 130, bodies: ['c'], outcome: { kind: 'appended', start: 0, end: 1, tail: 1 } },
  )
  change(history)
  return history
}

const page = (from: number, at: number, bodies: string[], tail?: number): LifePage => ({
  from,
  to: from + 1,
  at,
  tail,
  records: bodies.map((body, i) => ({ seqNum: at + i, body, isCommand: false })),
})
const pageOf =
  (...args: Parameters<typeof page>) =>
  (history: LifeHistory) =>
    void history.pages.push(page(...args))
const trim = (to: number, point: number, isAcknowledged: boolean) => (history: LifeHistory) =>
  void history.trims.push({ from: to - 1, to, point, isAcknowledged })

describe('the lives of a stream', () => {
  it.each<[string, (history: LifeHistory) => void]>([
    ['all records', pageOf(4, 0, ['a', 'b'])],
    ['the records of the second one', pageOf(131, 0, ['c'])],
    ['the tail', pageOf(131, 1, [], 1)],
    [
      'a trim within its grace',
      (history) => {
        trim(10, 1, true)(history)
        pageOf(12, 0, ['a', 'b'])(history)
      },
    ],
    [
      'a trim of unknown outcome',
      (history) => {
        trim(10, 1, false)(history)
        pageOf(30, 1, ['b'])(history)
      },
    ],
    ['a read during the deletion', pageOf(105, 0, ['a'])],
  ])('are consistent with %s', (_, change) => {
    expect(checkLives(historyOf(change), GRACE)).toEqual([])
  })

  it.each<[string, string, (history: LifeHistory) => void]>([
    ['a read without an acknowledged record', 'lost: b', pageOf(4, 0, ['a'], 1)],
    ['a tail before an acknowledged record', 'lost: a', pageOf(4, 0, [], 0)],
    ['a record of the first one', 'of a deleted stream: a', pageOf(131, 0, ['a'])],
    ['a record that has no append', 'has no append: x', pageOf(4, 2, ['x'])],
    [
      'an ack that counts on from the first one',
      'stored up to 4 of 2',
      (history) =>
        void history.appends.push({
          from: 131,
          to: 132,
          bodies: ['d'],
          outcome: { kind: 'appended', start: 3, end: 4, tail: 4 },
        }),
    ],
    [
      'a record with two contents',
      'record 0 is c and d',
      (history) => {
        history.appends.push({ from: 131, to: 132, bodies: ['d'], outcome: { kind: 'unknown' } })
        pageOf(133, 0, ['d'])(history)
      },
    ],
    [
      'a read of trimmed records after the grace',
      'begins with 0 after a trim to 1',
      (history) => {
        trim(10, 1, true)(history)
        pageOf(30, 0, ['a', 'b'])(history)
      },
    ],
    [
      'a read of expired records',
      'after its retention',
      (history) => {
        history.lives[0] = { ...history.lives[0]!, ageMs: 20 }
        pageOf(60, 0, ['a'])(history)
      },
    ],
    [
      'an append without the timestamp that is required',
      'stored without timestamp: d',
      (history) => {
        history.changes.push({ from: 131, to: 132, requiresTimestamp: true, isAcknowledged: true })
        history.appends.push({
          from: 133,
          to: 134,
          bodies: ['d'],
          outcome: { kind: 'appended', start: 1, end: 2, tail: 2 },
        })
      },
    ],
    [
      'a refused append that was stored',
      'stored without effect: d',
      (history) => {
        history.appends.push({ from: 131, to: 132, bodies: ['d'], outcome: { kind: 'not-made' } })
        pageOf(133, 1, ['d'])(history)
      },
    ],
  ])('contradict %s', (_, finding, change) => {
    expect(checkLives(historyOf(change), GRACE)).toContainEqual(expect.stringContaining(finding))
  })
})
