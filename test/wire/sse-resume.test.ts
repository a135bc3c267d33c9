import { describe, expect, it } from 'vitest'
import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { resumeQuery } from '../../src/wire/sse.ts'

const MAX = Number.MAX_SAFE_INTEGER

describe('a read that continues after the last received event', () => {
  // query, last sequence number, records and bytes delivered, query afterwards
  it.each<[string, ReadQuery, [number, number, number], ReadQuery]>([
    ['starts behind that event', {}, [9, 3, 30], { seqNum: 10 }],
    ['starts at 1 behind record 0', {}, [0, 1, 8], { seqNum: 1 }],
    ['replaces a sequence number', { seqNum: 2 }, [9, 3, 30], { seqNum: 10 }],
    ['replaces a timestamp', { timestamp: 2 }, [9, 3, 30], { seqNum: 10 }],
    ['replaces a tail offset', { tailOffset: 2 }, [9, 3, 30], { seqNum: 10 }],
    ['keeps clamp', { clamp: true }, [9, 3, 30], { seqNum: 10, clamp: true }],
    ['keeps until and wait', { until: 5, waitMs: 0 }, [9, 3, 30], { seqNum: 10, until: 5, waitMs: 0 }],
    ['counts what was delivered', { count: 10, bytes: 100 }, [9, 3, 30], { seqNum: 10, count: 7, bytes: 70 }],
    ['has nothing left', { count: 3, bytes: 30 }, [9, 3, 30], { seqNum: 10, count: 0, bytes: 0 }],
    ['never has less than nothing', { count: 1, bytes: 1 }, [9, 3, 30], { seqNum: 10, count: 0, bytes: 0 }],
    ['saturates', {}, [MAX, MAX, MAX], { seqNum: MAX }],
    ['leaves a bound of 0 in place', { count: 0 }, [9, 0, 0], { seqNum: 10, count: 0 }],
  ])('%s', (_, query, [lastSeqNum, count, bytes], expected) => {
    // Compares without undefined members.
    expect(resumeQuery(query, { lastSeqNum, count, bytes })).toEqual(expected)
  })

  it('is no longer checked against `until` by its timestamp', () => {
    const resumed = resumeQuery({ timestamp: 9, until: 5 }, { lastSeqNum: 3, count: 1, bytes: 8 })
    expect(() => assertReadQuery(resumed)).not.toThrow()
  })
})
