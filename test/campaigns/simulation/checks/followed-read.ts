import type { ReadBatch, ReadQuery, StreamPosition } from '../../../../src/index.ts'
import type { ClockWindow } from '../engine-clock.ts'
import type { StoredLog, StoredRecord } from '../stored-log.ts'
import type { Moment, StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'
import { presenceIn } from './check-unary-read.ts'
import { startOf, waitOf } from './read-start.ts'
import { type Presence, type Room, roomOf, type Walked, walk } from './walk.ts'

/** Checks a read session while it runs: every record once and in order, from its start on. */
export class FollowedRead {
  readonly #history: StreamHistory
  readonly #query: ReadQuery
  readonly #waitMs: number
  /** From the call that opened it to its return. */
  readonly #opening: ClockWindow
  /** The moments at which it may have been opened, according to what was delivered. */
  #candidates: readonly Moment[]
  #room: Room
  #next: number | undefined

  /** The session was opened between the version observed at its call and now. */
  constructor(history: StreamHistory, query: ReadQuery, since: number, opening: ClockWindow) {
    this.#history = history
    this.#query = query
    this.#waitMs = waitOf(query, 'session')
    this.#opening = opening
    this.#room = roomOf(query, 'session')
    const moments = history.moments.slice(since)
    this.#candidates = moments.filter((moment) => objectionToOpening(query, moment, opening) === undefined)
    if (this.#candidates.length > 0) return
    const reasons = moments.map((moment) => objectionToOpening(query, moment, opening)).slice(-8)
    throw new Violation(`a session of ${this.#shown} is refused: ${reasons.join('; ')}`, 'it was opened')
  }

  get #shown(): string {
    return JSON.stringify(this.#query)
  }

  /** The incarnation that it reads. */
  get log(): StoredLog {
    return this.#candidates.at(-1)!.log!
  }

  /** Whether it has delivered every observed record. */
  get hasAll(): boolean {
    const { moments, observed } = this.#history
    const heardOf = moments[observed.records]!
    return this.#candidates.some((moment) => {
      const end = heardOf.log === moment.log ? heardOf.state.tail : 0
      return typeof this.#walk(moment, [], end) !== 'string'
    })
  }

  deliver({ records, count, lastSeqNum, tail }: ReadBatch): void {
    const last = records.at(-1)
    if (last === undefined || records.length !== count || last.seqNum !== lastSeqNum) {
      throw new Violation('a batch says of its records what is so', `${count} up to ${lastSeqNum}`)
    }
    const walked = this.#narrow(
      `a session of ${this.#shown} delivers every record once and in order`,
      (moment) => this.#walk(moment, records, 0),
    )
    this.#next = walked.next
    this.#room = walked.room
    if (tail !== undefined) this.#checkTail(tail)
  }

  /** Checks the end of the session. `idle` spans the time since its last event. */
  end(idle: ClockWindow): void {
    this.#narrow(`a session of ${this.#shown} ends at a bound, or when it has waited`, (moment) => {
      const walked = this.#walk(moment, [], moment.state.tail)
      if (typeof walked === 'string' || walked.isBounded) return walked
      const atEnd = this.#walk(moment, [], moment.log!.records.length)
      if (typeof atEnd !== 'string' && atEnd.isBounded) return atEnd
      return idle.max - idle.min >= this.#waitMs ? walked : `it waited only ${idle.max - idle.min} ms`
    })
  }

  /** Keeps the moments that are consistent with the delivered records. */
  #narrow(expected: string, walkFrom: (moment: Moment) => Walked | string): Walked {
    const walks = this.#candidates.map((moment) => ({ moment, walked: walkFrom(moment) }))
    const left = walks.filter(({ walked }) => typeof walked !== 'string')
    const first = left[0]
    if (first === undefined) {
      const objections = walks.map(({ moment, walked }) => `opened at version ${moment.version}: ${walked}`)
      throw new Violation(expected, objections.slice(-8).join('; '))
    }
    this.#candidates = left.map(({ moment }) => moment)
    return first.walked as Walked
  }

  #walk(moment: Moment, records: ReadBatch['records'], end: number): Walked | string {
    const from = this.#next ?? fromOf(this.#query, moment)
    return walk(moment.log!.records, from, end, records, presenceIn(moment, this.#opening), this.#room)
  }

  #checkTail({ seqNum, timestamp }: StreamPosition): void {
    const { log } = this
    const wasTail = this.#history.moments.some(
      (moment) => moment.log === log && moment.state.tail === seqNum && moment.tailTimestamp === timestamp,
    )
    if (wasTail && seqNum >= this.#next!) return
    throw new Violation('a batch tells a tail that the stream had', `${seqNum} at ${timestamp}`)
  }
}

function fromOf(query: ReadQuery, moment: Moment): number {
  const start = startOf(query, moment)
  return typeof start === 'string' ? moment.state.tail : start.seqNum
}

function presencesAt(query: ReadQuery, moment: Moment, clock: ClockWindow): Presence[] {
  const stored: readonly StoredRecord[] = moment.log!.records.slice(fromOf(query, moment), moment.state.tail)
  return stored.map(presenceIn(moment, clock))
}

/** Returns why a session requested at this moment cannot have been opened (rule 9), as a clause. */
function objectionToOpening(query: ReadQuery, moment: Moment, clock: ClockWindow): string | undefined {
  if (moment.log === undefined) return 'there is no stream'
  if (startOf(query, moment) === 'beyond the tail') return `the tail is ${moment.state.tail}`
  if (waitOf(query, 'session') > 0) return undefined
  const presences = presencesAt(query, moment, clock)
  return presences.every((presence) => presence === 'never') ? 'there is nothing to read' : undefined
}

/**
 * Returns why a session requested at this moment cannot have been rejected with 416 and this tail, as a
 * clause.
 */
export function objectionToRefusal(
  query: ReadQuery,
  tail: StreamPosition,
  moment: Moment,
  clock: ClockWindow,
): string | undefined {
  if (moment.log === undefined) return 'there is no stream'
  if (tail.seqNum !== moment.state.tail) return `the tail is ${moment.state.tail}`
  if (startOf(query, moment) === 'beyond the tail') return undefined
  if (waitOf(query, 'session') > 0) return 'it had to wait'
  return presencesAt(query, moment, clock).includes('must') ? 'there is something to read' : undefined
}
