import type { ReadQuery, SequencedRecord } from '../../../../src/index.ts'
import { millisecondsOf } from '../../../../src/model/validation.ts'
import type { StoredRecord } from '../stored-log.ts'

/** Whether a read must, may or never deliver a record in its range. */
export type Presence = 'must' | 'may' | 'never'

/** The remaining bounds of a read. */
export interface Room {
  readonly count: number
  readonly bytes: number
  /** Exclusive timestamp. */
  readonly until: number
}

/** A unary read has at most 1,000 records and 1 MiB (docs/protocol.md "Bounds"). */
export function roomOf(query: ReadQuery, kind: 'unary' | 'session'): Room {
  const { count, bytes, until } = query
  if (kind === 'session')
    return {
      count: count ?? INFINITE,
      bytes: bytes ?? INFINITE,
      until: until === undefined ? INFINITE : millisecondsOf(until),
    }
  return {
    count: Math.min(count ?? INFINITE, 1000),
    bytes: Math.min(bytes ?? INFINITE, 1_048_576),
    until: until === undefined ? INFINITE : millisecondsOf(until),
  }
}

const INFINITE = Number.POSITIVE_INFINITY

export function isUsedUp({ count, bytes }: Room): boolean {
  return count <= 0 || bytes <= 0
}

export function admits({ count, bytes, until }: Room, { meteredBytes, timestamp }: StoredRecord): boolean {
  return count >= 1 && bytes >= meteredBytes && timestamp < until
}

export interface Walked {
  /** The position of the next record. */
  readonly next: number
  /** The remaining bounds. */
  readonly room: Room
  /** Whether a bound excludes the next record. */
  readonly isBounded: boolean
}

/**
 * Compares the delivered records with the records of a stream: in order, none twice, and none omitted that
 * had to be delivered before `end`. Returns a clause that describes the difference, or the position reached.
 */
export function walk(
  records: readonly StoredRecord[],
  from: number,
  end: number,
  delivered: readonly SequencedRecord[],
  presenceOf: (record: StoredRecord) => Presence,
  before: Room,
): Walked | string {
  let room = before
  let next = from
  for (const record of delivered) {
    for (;;) {
      const stored = records[next]
      if (stored === undefined) return `record ${record.seqNum} came where ${next} would have come next`
      if (stored.seqNum === record.seqNum) break
      if (presenceOf(stored) === 'must') return `record ${record.seqNum} came where ${next} had to come next`
      next++
    }
    const stored = records[next]!
    if (presenceOf(stored) === 'never') return `record ${next} is trimmed or expired`
    if (stored.timestamp !== record.timestamp || Buffer.compare(stored.body, record.body) !== 0) {
      return `record ${next} is another one`
    }
    if (!admits(room, stored)) return `record ${next} is beyond a bound of the read`
    room = { ...room, count: room.count - 1, bytes: room.bytes - stored.meteredBytes }
    next++
  }
  for (let index = next; index < end; index++) {
    const stored = records[index]!
    const presence = presenceOf(stored)
    // Also before a record that may be omitted, because it may be visible.
    const ends = isUsedUp(room) || (presence !== 'never' && !admits(room, stored))
    if (ends) return { next, room, isBounded: true }
    if (presence === 'must') return `record ${index} was left out`
  }
  return { next, room, isBounded: isUsedUp(room) }
}
