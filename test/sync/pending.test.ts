import fc from 'fast-check'
import { expect, test } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { pendingAt } from '../../src/sync/changes.ts'
import {
  type Confirmation,
  entryRecords,
  initialProgress,
  type LogRecord,
  noteRecord,
  OutboxState,
} from '../../src/sync/outbox-log.ts'

const NONE: ReadonlyMap<number, string> = new Map()

/** The log of an outbox, and a view that shows what is pending. */
class ViewedLog {
  readonly state = new OutboxState()
  shown: ReturnType<typeof pendingAt> = []

  constructor() {
    this.note(noteRecord('progress', initialProgress('device', 'p')))
  }

  note(...records: LogRecord[]): void {
    const { next } = this.state
    this.state.include(records.map((record, index) => ({ ...record, seqNum: next + index, timestamp: 0 })))
  }

  /** Appends an entry of some records. Returns its number. */
  append(count = 1): number {
    const number = this.state.next
    const record = { timestamp: undefined, headers: [], body: utf8('x') }
    this.note(...entryRecords(Array(count).fill(record), 'nonce'))
    return number
  }

  /** The numbers that are pending at a position, once records with these numbers were read. */
  pending(position: number, read = NONE): number[] {
    this.shown = pendingAt(this.state, position, this.shown, read)
    return this.shown.map(({ number }) => number)
  }
}

function stored(number: number, confirmation: Confirmation, copiedTo?: number): LogRecord {
  return noteRecord('stored', { confirmed: [[number, confirmation]], copiedTo })
}

function placeOf(from: number, to: number): Confirmation {
  return { start: { seqNum: from, timestamp: 0 }, end: { seqNum: to, timestamp: 0 } }
}

test('an acknowledged record stays pending until it is known where the copy has it', () => {
  const log = new ViewedLog()
  const number = log.append(3)
  log.note(stored(number, placeOf(5, 8)))
  expect(log.pending(8)).toEqual([number, number + 1, number + 2])
  log.note(stored(number, placeOf(5, 8), 5))
  expect(log.pending(6)).toEqual([number + 1, number + 2])
  expect(log.pending(8)).toEqual([])
})

test('a record that has left the outbox stays pending in a view that has not reached it', () => {
  const log = new ViewedLog()
  const number = log.append()
  expect(log.pending(0)).toEqual([number])
  log.note(stored(number, placeOf(5, 6), 20))
  expect([...log.state.entries]).toEqual([])
  expect(log.pending(5)).toEqual([number])
  expect(log.pending(6, new Map([[number, 'another nonce']]))).toEqual([number])
  expect(log.pending(6, new Map([[number, 'nonce']]))).toEqual([])
})

test('a record that has left the outbox and was trimmed leaves a view that is past the copy of then', () => {
  const log = new ViewedLog()
  const number = log.append()
  log.pending(0)
  log.note(stored(number, placeOf(5, 6), 20))
  expect(log.pending(19)).toEqual([number])
  expect(log.pending(20)).toEqual([])
})

test('a discarded record leaves every view', () => {
  const log = new ViewedLog()
  const [first, second] = [log.append(), log.append()]
  log.note(noteRecord('ended', { numbers: [first], parked: { code: 'invalid', message: 'refused' } }))
  expect(log.pending(0)).toEqual([first, second])
  log.note(noteRecord('discard', { number: first }))
  expect(log.pending(0)).toEqual([second])
})

test('what a replaced stream has acknowledged is pending until a view begins again', () => {
  const log = new ViewedLog()
  const [first, second] = [log.append(), log.append()]
  log.note(stored(first, placeOf(20, 21)))
  expect(log.pending(8)).toEqual([first, second])
  log.note(noteRecord('replaced', {}))
  expect(log.pending(8)).toEqual([first, second])
  log.shown = []
  expect(log.pending(0)).toEqual([second])
})

test('no record is shown twice or disappears, at whatever pace outbox, mirror and view go', () => {
  const step = fc.constantFrom('append', 'acknowledge', 'find', 'copy', 'read')
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const log = new ViewedLog()
      const numbers: number[] = []
      // The server stores record `k` at position `k`. What the mirror copies, it has noted before.
      let [acknowledged, found, copied, read] = [0, 0, 0, 0]
      for (const kind of steps) {
        let seen = NONE
        if (kind === 'append') numbers.push(log.append())
        else if (kind === 'acknowledge' && acknowledged < numbers.length) {
          log.note(stored(numbers[acknowledged]!, placeOf(acknowledged, ++acknowledged)))
        } else if (kind === 'find' && found < numbers.length) {
          log.note(stored(numbers[found]!, placeOf(found, ++found), copied))
        } else if (kind === 'copy' && copied < found) copied++
        else if (kind === 'read' && read < copied) seen = new Map([[numbers[read++]!, 'nonce']])
        expect([...numbers.slice(0, read), ...log.pending(read, seen)]).toEqual(numbers)
      }
    }),
  )
})
