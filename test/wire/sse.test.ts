import { describe, expect, it } from 'vitest'
import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { Malformed } from '../../src/wire/json.ts'
import {
  batchEvent,
  DONE_EVENT,
  EventParser,
  errorEvent,
  parseLastEventId,
  pingEvent,
  resumeQuery,
  startBlock,
} from '../../src/wire/sse.ts'
import { titled } from '../support/titled.ts'
import { outcomeOf } from './outcome.ts'

describe('events', () => {
  it('are written field by field, in order, and end with a blank line', () => {
    expect(batchEvent({ lastSeqNum: 9, count: 10, bytes: 1234 }, '{"records":[]}')).toBe(
      'event: batch\nid: 9,10,1234\ndata: {"records":[]}\n\n',
    )
    expect(pingEvent('{"timestamp":1}')).toBe('event: ping\ndata: {"timestamp":1}\n\n')
    expect(errorEvent('{"code":"storage","message":"lost"}')).toBe(
      'event: error\ndata: {"code":"storage","message":"lost"}\n\n',
    )
    expect(DONE_EVENT).toBe('data: [DONE]\n\n')
  })

  it('have an id of three numbers, also at their limits', () => {
    const numbers = { lastSeqNum: Number.MAX_SAFE_INTEGER, count: 0, bytes: Number.MAX_SAFE_INTEGER }
    const id = /^id: (.*)$/m.exec(batchEvent(numbers, '{}'))![1]!
    expect(id).toMatch(/^[0-9]+,[0-9]+,[0-9]+$/)
    expect(parseLastEventId(id)).toEqual(numbers)
  })
})

it.each([0, 1, 7])('a block that is no event lets a read resume at %i', (seqNum) => {
  const block = startBlock(seqNum)
  expect(new EventParser().push(block)).toEqual([])
  const delivered = parseLastEventId(/^id: (.*)\n\n$/.exec(block)![1]!)
  expect(resumeQuery({ tailOffset: 0, count: 3, bytes: 50 }, delivered)).toEqual({
    seqNum,
    count: 3,
    bytes: 50,
  })
})

describe('parseLastEventId', () => {
  it.each(
    titled<[string, number[]]>([
      ['0,0,0', [0, 0, 0]],
      ['9,10,1234', [9, 10, 1234]],
      ['007,01,0', [7, 1, 0]],
      ['9007199254740991,9007199254740991,9007199254740991', [2 ** 53 - 1, 2 ** 53 - 1, 2 ** 53 - 1]],
      ['1,9007199254740993,18446744073709551615', [1, 2 ** 53 - 1, 2 ** 53 - 1]],
      [`${'0'.repeat(1000)}1,1,1`, [1, 1, 1]],
    ]),
  )('decodes %s', (_, value, [lastSeqNum, count, bytes]) => {
    expect(parseLastEventId(value)).toEqual({ lastSeqNum, count, bytes })
  })

  it.each(
    titled(
      [
        '',
        '1',
        '1,2',
        '1,2,3,4',
        '1,2,',
        ',2,3',
        ',,',
        '1, 2,3',
        ' 1,2,3',
        '1,2,3 ',
        '-1,2,3',
        '-1,0,1',
        '-2,0,0',
        '+1,2,3',
        '1.0,2,3',
        '1e3,2,3',
        '0x1,2,3',
        'a,b,c',
        '1,2,3\n',
        '١,٢,٣',
        '18446744073709551616,0,0',
        '0,18446744073709551616,0',
        '0,0,18446744073709551616',
        `${'9'.repeat(100_000)},0,0`,
      ].map((value) => [value]),
    ),
  )('rejects %s', (_, value) => {
    expect(outcomeOf(() => parseLastEventId(value))).toBe('400 bad_header')
  })

  it.each(['9007199254740992,0,0', '18446744073709551615,0,0'])(
    'rejects a start beyond 2^53 - 1: %s',
    (value) => {
      expect(outcomeOf(() => parseLastEventId(value))).toBe('422 invalid')
      expect(() => parseLastEventId(value)).toThrow('9007199254740991')
    },
  )
})

describe('events', () => {
  it('are parsed however they are cut', () => {
    const text = 'event: a\ndata: 1\ndata: 2\n\r\n:comment\r\ndata:3\r\r'
    const whole = new EventParser().push(text)
    const parser = new EventParser()
    expect([...text].flatMap((character) => parser.push(character))).toEqual(whole)
    expect(whole).toEqual([
      { event: 'a', data: '1\n2' },
      { event: 'message', data: '3' },
    ])
  })

  it('are bounded', () => {
    const parser = new EventParser()
    const chunk = 'x'.repeat(1024 * 1024)
    expect(() => {
      for (let i = 0; i < 17; i++) parser.push(chunk)
    }).toThrow(Malformed)
  })
})

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
