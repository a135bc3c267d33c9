import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  blockExpiresAt,
  extendRetention,
  isBlockExpired,
  type RetentionExtension,
  recordsExpireAt,
} from '../../src/core/retention.ts'
import type { RetentionPolicy } from '../../src/model/config.ts'
import { INTEGER_MAX } from '../../src/model/limits.ts'

const MARGIN_MS = 2_000
const DAY_MS = 86_400_000
const days = (count: number): RetentionPolicy => ({ ageSeconds: (count * DAY_MS) / 1000 })
const ALL = INTEGER_MAX

const extension = (below: number, after: number, until: number | null): RetentionExtension => ({
  below,
  after,
  until,
})

describe('extensions after a change of the retention', () => {
  it.each<[string, RetentionPolicy, RetentionPolicy, RetentionExtension[], RetentionExtension[]]>([
    ['none after no change', days(7), days(7), [], []],
    ['none after a shorter one', days(7), days(1), [], []],
    [
      'one for all records after a longer one',
      days(7),
      days(30),
      [],
      [extension(ALL, MARGIN_MS, 30 * DAY_MS)],
    ],
    ['one without end after infinity', days(7), 'infinite', [], [extension(ALL, MARGIN_MS, null)]],
    [
      'those below the tail after a shorter one',
      days(30),
      days(1),
      [extension(3, -9, 5), extension(ALL, -5, null)],
      [extension(3, -9, 5), extension(10, -5, null)],
    ],
    [
      'the ones that apply, until the later time, after a longer one',
      days(1),
      days(2),
      [
        extension(3, -9, MARGIN_MS),
        extension(4, -9, DAY_MS),
        extension(5, -9, 9 * DAY_MS),
        extension(6, -9, null),
      ],
      [
        // United beyond four: `below` of the second, `until` of the second.
        extension(4, -9, 2 * DAY_MS),
        extension(5, -9, 9 * DAY_MS),
        extension(6, -9, null),
        extension(ALL, MARGIN_MS, 2 * DAY_MS),
      ],
    ],
    [
      'a single one after a longer one and another',
      days(7),
      days(30),
      [extension(ALL, -DAY_MS, 6 * DAY_MS)],
      [extension(ALL, -DAY_MS, 30 * DAY_MS)],
    ],
    [
      'none that has ended',
      days(30),
      days(7),
      [extension(4, -9, 0), extension(5, -9, 1)],
      [extension(5, -9, 1)],
    ],
  ])('are %s', (_, from, to, before, after) => {
    expect(extendRetention(before, { from, to }, 10, 0)).toEqual(after)
  })
})

describe('the expiry of a block', () => {
  const extensions = [
    { below: 5, after: 100, until: 1_000 },
    { below: 9, after: 50, until: 700 },
  ]
  it.each([
    ['is its own without extensions', 4, 200, undefined, 200],
    ['is its own at or above the extensions', 9, 200, extensions, 200],
    ['is its own if it expired before them', 0, 50, extensions, 50],
    ['is the end of the one that applies', 5, 200, extensions, 700],
    ['is the end of the one that applies by time', 0, 100, extensions, 700],
    ['is the latest end', 0, 101, extensions, 1_000],
    ['is its own if it is later', 0, 1_001, extensions, 1_001],
    ['is never without one', 0, null, extensions, null],
    ['is never with an extension without end', 0, 200, [{ below: 1, after: 0, until: null }], null],
  ])('%s', (_, firstSeqNum, expiresAt, given, expiry) => {
    expect(blockExpiresAt({ firstSeqNum, expiresAt }, given)).toBe(expiry)
  })
})

/** Appends, changes of the policy, and reclaims of a log, of which a storage stores extended expiries. */
const step = fc.record({
  waitMs: fc.oneof(fc.nat(5_000), fc.nat(60_000)),
  action: fc.oneof(
    { weight: 3, arbitrary: fc.constant('append' as const) },
    { weight: 1, arbitrary: fc.constant('reclaim' as const) },
    {
      weight: 2,
      arbitrary: fc.oneof(
        fc.constant<RetentionPolicy>('infinite'),
        fc.integer({ min: 1, max: 50 }).map<RetentionPolicy>((ageSeconds) => ({ ageSeconds })),
      ),
    },
  ),
  /** How many appends ago the tail was read. */
  lag: fc.nat(2),
})

describe('any sequence of policies', () => {
  it('never frees a record before the policy of its append, or a longer one that found it, ends', () => {
    run(({ records, now, extensions }) => {
      for (const record of records) {
        const { firstSeqNum, stored, due } = record
        const expiry = blockExpiresAt({ firstSeqNum, expiresAt: stored }, extensions)
        if (!isBlockExpired(due, now))
          expect(isBlockExpired(expiry, now), JSON.stringify({ record, now })).toBe(false)
      }
    })
  })

  it('never keeps a record beyond the longest of its policies, counted from its append or the last change', () => {
    run(({ records, extensions }) => {
      for (const { firstSeqNum, stored, latest } of records) {
        const expiry =
          blockExpiresAt({ firstSeqNum, expiresAt: stored }, extensions) ?? Number.POSITIVE_INFINITY
        expect(expiry).toBeLessThanOrEqual(latest ?? Number.POSITIVE_INFINITY)
      }
    })
  })

  it('keeps at most four extensions', () => {
    run(({ extensions }) => expect(extensions.length).toBeLessThanOrEqual(4))
  })
})

interface Walk {
  readonly now: number
  readonly extensions: readonly RetentionExtension[]
  readonly records: readonly WalkRecord[]
}

interface WalkRecord {
  readonly firstSeqNum: number
  /** As the storage has it. */
  stored: number | null
  /** No earlier. */
  due: number | null
  /** No later. */
  latest: number | null
}

function run(check: (walk: Walk) => void): void {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let now = 0
      let policy: RetentionPolicy = { ageSeconds: 10 }
      let extensions: readonly RetentionExtension[] = []
      let records: WalkRecord[] = []
      let seqNum = 0
      let sinceChange = 0
      for (const { waitMs, action, lag } of steps) {
        now += waitMs
        const expiresAt = recordsExpireAt(policy, now)
        if (action === 'append') {
          records.push({ firstSeqNum: seqNum++, stored: expiresAt, due: expiresAt, latest: expiresAt })
          sinceChange++
        } else if (action === 'reclaim') {
          for (const record of records) {
            record.stored = blockExpiresAt({ ...record, expiresAt: record.stored }, extensions)
          }
          records = records.filter(({ stored }) => !isBlockExpired(stored, now))
        } else {
          // Only appends under the current policy may follow the tail.
          const tail = seqNum - Math.min(lag, sinceChange)
          extensions = extendRetention(extensions, { from: policy, to: action }, tail, now)
          const until = recordsExpireAt(action, now)
          for (const record of records) {
            if (
              isLater(until, recordsExpireAt(policy, now)) &&
              !isBlockExpired(record.due, now + MARGIN_MS)
            ) {
              record.due = isLater(until, record.due) ? until : record.due
            }
            if (isLater(until, record.latest)) record.latest = until
          }
          policy = action
          sinceChange = 0
        }
        check({ now, extensions, records })
      }
    }),
  )
}

function isLater(a: number | null, b: number | null): boolean {
  return b !== null && (a === null || a > b)
}
