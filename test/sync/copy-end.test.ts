import { expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { type Arrival, type CopyEnd, continuationOf, equalRecords } from '../../src/sync/mirror.ts'

function record(seqNum: number, timestamp: number, body = 'a'): SequencedRecord {
  return { seqNum, timestamp, headers: [[utf8('k'), utf8('v')]], body: utf8(body) }
}

function arrival(...records: SequencedRecord[]): Arrival {
  return { records, tail: undefined }
}

function atTail(seqNum: number, timestamp: number): Arrival {
  return { records: [], tail: { seqNum, timestamp } }
}

const COPY: CopyEnd = { tail: { seqNum: 10, timestamp: 100 }, last: [record(8, 90), record(9, 100)] }
const TRIMMED: CopyEnd = { tail: { seqNum: 10, timestamp: 100 }, last: [] }
const UNSTARTED: CopyEnd = { tail: { seqNum: 10, timestamp: 0 }, last: [] }

const ofStream = <Of extends object>(streamId: string, of: Of) => ({ ...of, streamId })

const same = { kind: 'same' }
const trimmed = (from: number, to: number) => ({ kind: 'trimmed', gap: { from, to } })
const replaced = { kind: 'replaced' }

it.each<[string, CopyEnd, Arrival, unknown]>([
  ['the last record again', COPY, arrival(record(9, 100), record(10, 101)), same],
  ['the last record with another body', COPY, arrival(record(9, 100, 'b')), replaced],
  ['the last record with another timestamp', COPY, arrival(record(9, 101)), replaced],
  ['the record after the last one', COPY, arrival(record(10, 101)), trimmed(10, 10)],
  ['a later record', COPY, arrival(record(12, 101)), trimmed(10, 12)],
  ['the first of the last records', COPY, arrival(record(8, 90)), same],
  ['another record before the last one', COPY, arrival(record(8, 90, 'b'), record(9, 100)), replaced],
  ['the tail of the copy', COPY, atTail(10, 100), same],
  ['the tail of the copy with another timestamp', COPY, atTail(10, 101), replaced],
  ['a tail below that of the copy', COPY, atTail(9, 100), replaced],
  ['a tail beyond that of the copy', COPY, atTail(11, 101), trimmed(10, 11)],
  ['a record with the timestamp of the trimmed one', TRIMMED, arrival(record(9, 100)), same],
  ['a record with another timestamp than the trimmed one', TRIMMED, arrival(record(9, 99)), replaced],
  ['the record after the trimmed one', TRIMMED, arrival(record(10, 101)), trimmed(10, 10)],
  ['the tail of a trimmed copy', TRIMMED, atTail(10, 100), same],
  ['a record before the start of a new copy', UNSTARTED, arrival(record(9, 50)), same],
  ['the first record of a new copy', UNSTARTED, arrival(record(10, 50)), same],
  ['the tail of a new copy', UNSTARTED, atTail(10, 50), same],
  ['a record beyond the start of a new copy', UNSTARTED, arrival(record(11, 50)), trimmed(10, 11)],
  ['a tail below the start of a new copy', UNSTARTED, atTail(3, 50), replaced],
  [
    'the last record of another stream',
    ofStream('a', COPY),
    ofStream('b', arrival(record(9, 100))),
    replaced,
  ],
  ['other records of the same stream', ofStream('a', COPY), ofStream('a', arrival(record(9, 1))), replaced],
  ['the next record of the same stream', ofStream('a', COPY), ofStream('a', arrival(record(10, 101))), same],
  ['its tail, and is the same', ofStream('a', TRIMMED), ofStream('a', atTail(10, 101)), same],
  ['a later record of the same stream', ofStream('a', COPY), ofStream('a', atTail(11, 9)), trimmed(10, 11)],
  ['an identity that is new', COPY, ofStream('a', arrival(record(9, 100))), same],
])('decides how a remote stream that sends %s continues a copy', (_, copy, first, expected) => {
  expect(continuationOf(copy, first)).toEqual(expected)
})

it('records are equal if every member is', () => {
  const one = record(1, 2)
  expect(equalRecords(one, record(1, 2))).toBe(true)
  expect(equalRecords(one, record(2, 2))).toBe(false)
  expect(equalRecords(one, { ...one, headers: [] })).toBe(false)
  expect(equalRecords(one, { ...one, headers: [[utf8('k'), utf8('w')]] })).toBe(false)
  expect(equalRecords(one, { ...one, headers: [[utf8('l'), utf8('v')]] })).toBe(false)
})
