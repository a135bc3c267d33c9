import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import {
  attemptRecord,
  attemptWithEntry,
  discardRecord,
  nextAttempt,
  parkedRecord,
  retryRecord,
  waitingEntries,
} from '../../src/sync/outbox-attempts.ts'
import {
  type BatchAttempt,
  batchRecords,
  emptyOutbox,
  type LogRecord,
  progressRecord,
  withLogRecords,
} from '../../src/sync/outbox-log.ts'
import { trimPoint } from '../../src/sync/outbox-plan.ts'

const entry = batchRecords([{ timestamp: undefined, headers: [], body: utf8('x') }])[0]!
const parked = (number: number) => parkedRecord(number, new HeadwaterError('invalid', 'refused'))
const attempt = (epoch: number, seq: number, numbers: readonly number[], after = -1): LogRecord =>
  attemptRecord({
    epoch,
    seq,
    numbers,
    position: seq === 0 ? 5 : undefined,
    isSettled: seq === 0,
    after,
  } satisfies BatchAttempt)
const confirmed = (...numbers: number[]): LogRecord => {
  const place = { seqNum: 0, timestamp: 0 }
  const found = numbers.map((number) => [number, { start: place, end: place }] as const)
  return progressRecord({ device: 'device', attemptAt: 1_000, position: 0, inDoubt: true, confirmed: found })
}

/** The state of a log that has these records, from the sequence number 0 on. */
function stateOf(...records: readonly LogRecord[]) {
  return withLogRecords(
    emptyOutbox(),
    records.map((record, seqNum): SequencedRecord => ({ ...record, seqNum, timestamp: 0 })),
  )
}

const KNOWLEDGE = {
  afterRefusal: 'stop',
  supportsProducers: false,
  position: 5,
  entriesMax: Number.POSITIVE_INFINITY,
  acknowledgedAt: undefined,
  abandonedAt: undefined,
  epochMin: 0,
} as const

function nextOf(
  state: ReturnType<typeof stateOf>,
  knowledge: Partial<Parameters<typeof nextAttempt>[1]> = {},
) {
  const next = nextAttempt(state, { ...KNOWLEDGE, ...knowledge })
  if (next === undefined) return undefined
  const { epoch, seq, entries, isNoted } = next
  return { epoch, seq, entries: entries.map(({ number }) => number), isNoted }
}

describe('the next batch', () => {
  it('is none if nothing waits', () => {
    expect(nextOf(stateOf())).toBeUndefined()
    expect(nextOf(stateOf(entry, attempt(0, 0, [0]), confirmed(0)))).toBeUndefined()
  })

  it('begins an epoch if there was none before', () => {
    expect(nextOf(stateOf(entry, entry))).toEqual({ epoch: 0, seq: 0, entries: [0, 1], isNoted: false })
  })

  it.each([0, 3])('is the one that the log has, and nothing else: number %i', (seq) => {
    const state = stateOf(entry, attempt(2, seq, [0]), entry)
    expect(nextOf(state)).toEqual({ epoch: 2, seq, entries: [0], isNoted: true })
  })

  it('continues the epoch if a server with producers has acknowledged the one before', () => {
    const state = stateOf(entry, attempt(2, 3, [0]), entry, confirmed(0))
    expect(nextOf(state, { acknowledgedAt: 1 })).toEqual({ epoch: 2, seq: 4, entries: [2], isNoted: false })
  })

  it('begins another epoch if it is not known that such a server has acknowledged the one before', () => {
    const next = { epoch: 3, seq: 0, entries: [2], isNoted: false }
    const state = stateOf(entry, attempt(2, 3, [0]), entry, confirmed(0))
    expect(nextOf(state)).toEqual(next)
    expect(nextOf(state, { acknowledgedAt: 0 })).toEqual(next)
  })

  it('begins another epoch if an entry of the one before was parked, and not if it is sent again', () => {
    const records = [entry, attempt(2, 3, [0]), entry, parked(0)]
    expect(nextOf(stateOf(...records))).toBeUndefined()
    expect(nextOf(stateOf(...records), { afterRefusal: 'continue' })).toMatchObject({ epoch: 3, seq: 0 })
    expect(nextOf(stateOf(...records, discardRecord(0)))).toMatchObject({ epoch: 3, seq: 0, entries: [2] })
    expect(nextOf(stateOf(...records, retryRecord(0)))).toMatchObject({ epoch: 2, seq: 3, entries: [0] })
  })

  it('never has other entries under the same number', () => {
    const state = stateOf(entry, entry, attempt(0, 0, [0, 1]), confirmed(0), entry)
    expect(nextOf(state)).toEqual({ epoch: 1, seq: 0, entries: [1, 4], isNoted: false })
  })

  it('begins another epoch after a rejection, except that an equal batch 0 is made again', () => {
    const first = stateOf(entry, attempt(2, 0, [0]))
    expect(nextOf(first, { abandonedAt: 1 })).toMatchObject({ epoch: 2, seq: 0, isNoted: true })
    expect(nextOf(stateOf(entry, attempt(2, 0, [0]), entry), { abandonedAt: 1 })).toEqual({
      epoch: 3,
      seq: 0,
      entries: [0, 2],
      isNoted: false,
    })
    const later = stateOf(entry, attempt(2, 1, [0]))
    expect(nextOf(later, { abandonedAt: 1 })).toEqual({ epoch: 3, seq: 0, entries: [0], isNoted: false })
  })

  it('has an epoch that the server accepts', () => {
    expect(nextOf(stateOf(entry), { epochMin: 8 })).toMatchObject({ epoch: 8, seq: 0 })
    expect(nextOf(stateOf(entry, attempt(2, 0, [0])), { epochMin: 8 })).toMatchObject({ epoch: 8, seq: 0 })
  })
})

describe('the condition of a batch', () => {
  const positionOf = (
    state: ReturnType<typeof stateOf>,
    knowledge: Partial<Parameters<typeof nextAttempt>[1]> = {},
  ) => nextAttempt(state, { ...KNOWLEDGE, ...knowledge })!.position
  const at = (position: number | undefined, isSettled = true) =>
    attemptRecord({ epoch: 0, seq: 0, numbers: [0], position, isSettled, after: -1 })

  it('is the position, unless the server has shown that it supports producers', () => {
    expect(positionOf(stateOf(entry))).toBe(5)
    expect(positionOf(stateOf(entry), { supportsProducers: true })).toBeUndefined()
  })

  it('is needed while an attempt at the position or behind it may take effect', () => {
    const known = { supportsProducers: true, abandonedAt: 1 }
    expect(positionOf(stateOf(entry, at(4), entry), known)).toBeUndefined()
    expect(positionOf(stateOf(entry, at(5), entry), known)).toBe(5)
    expect(positionOf(stateOf(entry, at(6), entry), known)).toBe(5)
  })

  it('is needed if an earlier attempt had none, or was not settled', () => {
    const known = { supportsProducers: true, abandonedAt: 1 }
    expect(positionOf(stateOf(entry, at(undefined), entry), known)).toBe(5)
    expect(positionOf(stateOf(entry, at(4, false), entry), known)).toBe(5)
    expect(positionOf(stateOf(entry, at(undefined), entry, confirmed(0)), known)).toBeUndefined()
  })

  it('is needed while an entry is parked, and for one that was', () => {
    const known = { supportsProducers: true, afterRefusal: 'continue' } as const
    const records = [entry, at(undefined), parked(0), entry]
    expect(positionOf(stateOf(...records), known)).toBe(5)
    const next = attemptRecord({ epoch: 1, seq: 0, numbers: [3], position: 4, isSettled: false, after: 1 })
    expect(positionOf(stateOf(...records, next, confirmed(3), retryRecord(0)), known)).toBe(5)
  })

  it('is the same if the batch is sent again, and another position makes it another batch', () => {
    const state = stateOf(entry, at(5))
    expect(nextAttempt(state, { ...KNOWLEDGE })).toMatchObject({ epoch: 0, position: 5, isNoted: true })
    expect(nextAttempt(state, { ...KNOWLEDGE, position: 7, supportsProducers: false })).toMatchObject({
      epoch: 1,
      position: 7,
      isSettled: true,
      isNoted: false,
    })
    expect(nextAttempt(stateOf(entry, at(9)), { ...KNOWLEDGE })).toMatchObject({
      position: 5,
      isSettled: false,
    })
    const free = stateOf(entry, at(undefined))
    expect(nextAttempt(free, { ...KNOWLEDGE, position: 7 })).toMatchObject({ epoch: 0, isNoted: true })
  })
})

describe('the attempt that is stored with its entry', () => {
  const one = withLogRecords(
    emptyOutbox(),
    [entry, attempt(3, 4, [0]), confirmed(0)].map((record, seqNum) => ({ ...record, seqNum, timestamp: 0 })),
  )

  it('continues the acknowledged one', () => {
    const next = attemptWithEntry(one, 1, 2)!
    const part = batchRecords([1, 2].map(() => ({ timestamp: undefined, headers: [], body: utf8('x') })))
    expect(stateOf(entry, attempt(3, 4, [0]), confirmed(0), ...part, next).attempt).toMatchObject({
      epoch: 3,
      seq: 5,
      numbers: [3],
    })
  })

  it('is none unless a server with producers has acknowledged the one before, and nothing waits', () => {
    expect(attemptWithEntry(stateOf(), undefined, 1)).toBeUndefined()
    expect(attemptWithEntry(one, undefined, 1)).toBeUndefined()
    expect(attemptWithEntry(one, 0, 1)).toBeUndefined()
    expect(attemptWithEntry(stateOf(entry, attempt(3, 4, [0])), 1, 1)).toBeUndefined()
  })

  it('is none for an entry that fills a batch', () => {
    expect(attemptWithEntry(one, 1, 1_000)).toBeUndefined()
    expect(attemptWithEntry(one, 1, 999)).toBeDefined()
  })
})

describe('the attempts of a log', () => {
  it('are those that follow each other: of two after the same one the first counts', () => {
    const state = stateOf(attempt(0, 0, [5]), attempt(1, 0, [5], 0), attempt(0, 1, [6], 0))
    expect(state.attempt).toMatchObject({ epoch: 1, seq: 0, at: 1 })
    const later = stateOf(
      attempt(0, 0, [5]),
      attempt(1, 0, [5], 0),
      attempt(0, 1, [6], 0),
      attempt(1, 1, [7], 1),
    )
    expect(later.attempt).toMatchObject({ epoch: 1, seq: 1, at: 3 })
  })

  it('may count the numbers of their entries back from their own place', () => {
    const state = stateOf(entry, entry, attempt(0, 0, [-1]), confirmed(0))
    expect(state.attempt).toBeUndefined()
    expect(stateOf(entry, attempt(0, 0, [-1])).attempt).toMatchObject({ numbers: [0], at: 1 })
  })

  it('do not count if another tab has appended an entry before theirs, unless it is parked', () => {
    expect(stateOf(entry, entry, attempt(0, 0, [1])).attempt).toBeUndefined()
    expect(stateOf(entry, entry, parked(0), attempt(0, 0, [1])).attempt).toMatchObject({ at: 3 })
  })

  it('are kept when the log is trimmed', () => {
    const state = stateOf(entry, attempt(0, 0, [0]), confirmed(0), confirmed(), entry)
    expect(trimPoint(state)).toBe(1)
  })

  it('are the same after a trim, also if one did not count because of an entry that has left', () => {
    const log = [entry, attempt(0, 0, [0]), confirmed(0), entry, entry, attempt(0, 1, [4], 1)]
    const later = [attempt(0, 1, [3], 1), confirmed(3)]
    const records = [...log, ...later].map((record, seqNum) => ({ ...record, seqNum, timestamp: 0 }))
    const state = withLogRecords(emptyOutbox(), records)
    expect(state.attempt).toMatchObject({ numbers: [3], at: 6 })
    const trimmed = withLogRecords(emptyOutbox(), records.slice(trimPoint(state)))
    expect(trimmed.attempt).toEqual(state.attempt)
    expect(trimmed.entries).toEqual(state.entries)
  })

  it('are in doubt, from their position on, until a sender that knows them says otherwise', () => {
    const progress = (attemptAt: number, position: number, inDoubt = false) =>
      progressRecord({ device: 'device', attemptAt, position, inDoubt, confirmed: [] })
    const records = [progress(-1, 2), entry, attempt(0, 0, [1])]
    expect(stateOf(...records)).toMatchObject({ position: 5, inDoubt: true })
    // Another sender has examined records before it knew of the attempt.
    const stale = stateOf(...records, progress(-1, 9))
    expect(stale).toMatchObject({ position: 5, inDoubt: true, progress: { position: 9 } })
    expect(trimPoint(stale)).toBe(0)
    const known = stateOf(...records, progress(2, 9))
    expect(known).toMatchObject({ position: 9, inDoubt: false })
    expect(trimPoint(known)).toBe(1)
    expect(stateOf(...records, progress(-1, 3), progress(-1, 9))).toMatchObject({
      position: 3,
      inDoubt: true,
    })
  })

  it('name the entries that may be stored', () => {
    const state = stateOf(entry, entry, entry, parked(0), attempt(0, 0, [0, 1]))
    expect(waitingEntries(state, state.attempt).map(({ number }) => number)).toEqual([1])
    expect(waitingEntries(state, undefined).map(({ number }) => number)).toEqual([1, 2])
  })
})
