import { expect, test } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import {
  type Attempt,
  type Confirmation,
  entryRecords,
  initialProgress,
  type LogRecord,
  noteRecord,
  OutboxState,
} from '../../src/sync/outbox-log.ts'

/** A log with entries of 1, 2 and 1 records, whose numbers are 1, 2 and 4, and an attempt with all of them. */
function attempted(batch?: number): OutboxState {
  const state = new OutboxState()
  const progress = initialProgress('device', 'producer')
  const attempt: Attempt = { entries: [1, 2, 4], position: 10, isAtTail: true, batch }
  include(state, noteRecord('progress', progress), ...entryOf(1), ...entryOf(2), ...entryOf(1))
  include(state, noteRecord('progress', { ...progress, attempt }))
  return state
}

function include(state: OutboxState, ...records: LogRecord[]): void {
  state.include(records.map((record, index) => ({ ...record, seqNum: state.next + index, timestamp: 0 })))
}

function entryOf(count: number): LogRecord[] {
  const record = { timestamp: undefined, headers: [], body: utf8('x') }
  return entryRecords(Array(count).fill(record), 'nonce')
}

function placeOf(from: number, to: number): Confirmation {
  return { start: { seqNum: from, timestamp: 0 }, end: { seqNum: to, timestamp: 0 } }
}

test.each([
  [1, placeOf(10, 11)],
  [2, placeOf(11, 13)],
  [4, placeOf(13, 14)],
])('a batch is stored as a whole if its entry %s is found', (number, place) => {
  const state = attempted(0)
  include(state, noteRecord('stored', { confirmed: [[number, place]], copiedTo: 0 }))
  expect(state.progress).toEqual({ ...initialProgress('device', 'producer'), batch: 0 })
  const places = [...state.entries.values()].map(({ confirmation }) => confirmation)
  expect(places).toEqual([placeOf(10, 11), placeOf(11, 13), placeOf(13, 14)])
  // A copy gets what was found. It may not have the others yet.
  const found = [...state.entries.values()].filter(({ isFound }) => isFound)
  expect(found.map((entry) => entry.number)).toEqual([number])
  expect(state.records).toBe(0)
})

test('what a copy begins behind leaves the outbox once another entry of its batch is found', () => {
  const state = attempted(0)
  include(state, noteRecord('stored', { confirmed: [[4, placeOf(13, 14)]], copiedTo: 13 }))
  expect([...state.entries.keys()]).toEqual([4])
})

test.each([undefined, 0])(
  'a stream that is replaced may have a batch, and gets no other of its epoch',
  (batch) => {
    const state = attempted(batch)
    include(state, ...entryOf(1), noteRecord('replaced', {}))
    const codes = [...state.entries.values()].map(({ error }) => error?.code)
    expect(codes).toEqual(['outcome_unknown', 'outcome_unknown', 'outcome_unknown', undefined])
    expect(state.progress).toMatchObject({ epoch: 1, batch: -1, attempt: undefined })
  },
)

test('what was found is not parked', () => {
  const state = attempted(0)
  include(state, noteRecord('stored', { confirmed: [[1, placeOf(10, 11)]], copiedTo: 0 }))
  include(
    state,
    noteRecord('ended', { numbers: [1, 2, 4], parked: { code: 'outcome_unknown', message: '' } }),
  )
  expect([...state.entries.values()].flatMap(({ error }) => error ?? [])).toEqual([])
})
