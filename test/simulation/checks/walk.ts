import type { ReadQuery, SequencedRecord } from '../../../src/index.ts'
import type { StoredRecord } from '../stored-log.ts'

/** Whether a read delivers a record that lies in its way. */
export type Presence = 'must' | 'may' | 'never'

/** What a read may still deliver. */
export interface Room {
  readonly count: number
  readonly bytes: number
  /** Exclusive timestamp. */
  readonly until: number
}

/** A unary read has at most 1,000 records and 1 MiB (service-interface.md "Read records" rule 5). */
export function roomOf(query: ReadQuery, kind: 'unary' | 'session'): Room {
  const { count, bytes, until } = query
  if (kind === 'session')
    return { count: count ?? INFINITE, bytes: bytes ?? INFINITE, until: until ?? INFINITE }
  return {
    count: Math.min(count ?? INFINITE, 1000),
    bytes: Math.min(bytes ?? INFINITE, 1_048_576),
    until: until ?? INFINITE,
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
  /** Where the next record comes from. */
  readonly next: number
  /** What is left. */
  readonly room: Room
  /** A bound forbids whatever comes next. */
  readonly isBounded: boolean
}

/**
 * Goes through the records of a stream from there on and compares what a read delivered: each in its turn, none twice, and none left out that it had to deliver before `end`. Gives why it cannot
 * be, as half a sentence, or where it got to.
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
    // Also before one that may be left out: it may be there.
    const ends = isUsedUp(room) || (presence !== 'never' && !admits(room, stored))
    if (ends) return { next, room, isBounded: true }
    if (presence === 'must') return `record ${index} was left out`
  }
  return { next, room, isBounded: isUsedUp(room) }
}
