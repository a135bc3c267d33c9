import { describe, expect, it } from 'vitest'
import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { invalidMessage } from './rejection.ts'

const TWO_STARTS = 'only one of `seqNum`, `timestamp` and `tailOffset` can be provided'
const NOTHING_BETWEEN = 'start `timestamp` exceeds or equal to `until`'
const MAX = Number.MAX_SAFE_INTEGER
const integer = (field: string) => `\`${field}\` must be an integer from 0 to 9007199254740991`
const WAIT = '`waitMs` must be a number, 0 or more'

describe('a read query', () => {
  it.each<[ReadQuery, string | undefined]>([
    [{}, undefined],
    [{ seqNum: 0, clamp: true, count: 0, bytes: 0, until: 0, waitMs: 0 }, undefined],
    [{ seqNum: MAX, count: MAX, bytes: MAX, until: MAX, waitMs: Number.POSITIVE_INFINITY }, undefined],
    [{ waitMs: 250 }, undefined],
    // At most one start; 0 counts as one.
    [{ seqNum: 0, timestamp: 0 }, TWO_STARTS],
    [{ seqNum: 0, tailOffset: 0 }, TWO_STARTS],
    [{ timestamp: 0, tailOffset: 0 }, TWO_STARTS],
    [{ seqNum: 1, timestamp: 1, tailOffset: 1 }, TWO_STARTS],
    [{ seqNum: 1, timestamp: undefined }, undefined],
    // Only a timestamp is compared with `until`.
    [{ timestamp: 5, until: 6 }, undefined],
    [{ timestamp: 5, until: 5 }, NOTHING_BETWEEN],
    [{ timestamp: 6, until: 5 }, NOTHING_BETWEEN],
    [{ timestamp: 0, until: 0 }, NOTHING_BETWEEN],
    [{ seqNum: 6, until: 5 }, undefined],
    [{ tailOffset: 6, until: 5 }, undefined],
    // A start beyond 2^53 - 1 is rejected instead of rounded (docs/protocol.md "Numbers").
    [{ seqNum: 2 ** 53 }, integer('seqNum')],
    [{ timestamp: 2 ** 53 }, integer('timestamp')],
    [{ seqNum: Number.POSITIVE_INFINITY }, integer('seqNum')],
    // A bound that selects everything is accepted.
    [{ tailOffset: 2 ** 53 }, undefined],
    [{ count: 2 ** 64, bytes: 2 ** 64, until: 2 ** 64 }, undefined],
    [{ tailOffset: Number.POSITIVE_INFINITY }, integer('tailOffset')],
    [{ count: Number.POSITIVE_INFINITY }, integer('count')],
    [{ timestamp: MAX, until: Number.POSITIVE_INFINITY }, integer('until')],
    [{ seqNum: -1 }, integer('seqNum')],
    [{ timestamp: 1.5 }, integer('timestamp')],
    [{ tailOffset: -1 }, integer('tailOffset')],
    [{ count: 0.5 }, integer('count')],
    [{ bytes: Number.NaN }, integer('bytes')],
    [{ until: Number.NEGATIVE_INFINITY }, integer('until')],
    [{ count: '5' as unknown as number }, integer('count')],
    [{ timestamp: new Date(5), until: new Date(6) }, undefined],
    [{ timestamp: new Date(6), until: 5 }, NOTHING_BETWEEN],
    [{ timestamp: new Date(Number.NaN) }, integer('timestamp')],
    [{ until: new Date(-1) }, integer('until')],
    [{ timestamp: '1' as unknown as number }, integer('timestamp')],
    [{ waitMs: -1 }, WAIT],
    [{ waitMs: '1' as unknown as number }, WAIT],
    [{ waitMs: Number.NaN }, WAIT],
  ])('%j: %s', (query, message) => {
    expect(invalidMessage(() => assertReadQuery(query))).toBe(message)
  })
})
