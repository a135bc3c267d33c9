import type { ReadBatch, ReadQuery } from '../../../../src/index.ts'
import type { ClockWindow } from '../../harness/engine-clock.ts'
import { Violation } from '../../harness/violation.ts'
import type { Moment, StoredLog, StoredRecord, StreamHistory } from '../../model/stream-history.ts'
import {
  deliveredFrom,
  isBounded,
  leftOut,
  type Progress,
  startOf,
  visibilitiesIn,
  visibilityOf,
  waitOf,
} from './read-rules.ts'

/** Checks a read session while it runs: every record once and in order, from its start on. */
export class FollowedRead {
  readonly #history: StreamHistory
  readonly #query: ReadQuery
  /** The time from the call that opened it to its return. */
  readonly #opening: ClockWindow
  /** The moments at which it may have been opened, according to what was delivered. */
  #candidates: readonly Moment[]
  #progress: Progress | undefined
  /** When the last record that was delivered appeared, or else when it was requested, in virtual time. */
  #waitingSince: number

  /** The session was opened between the version observed at its call and now. */
  constructor(
    history: StreamHistory,
    query: ReadQuery,
    since: number,
    opening: ClockWindow,
    calledAt: number,
  ) {
    this.#history = history
    this.#query = query
    this.#opening = opening
    this.#waitingSince = calledAt
    this.#candidates = history.moments.slice(since)
    this.#filter('is refused', (moment) => this.#openingContradiction(moment))
  }

  /** Whether it has delivered every observed record. */
  get isCaughtUp(): boolean {
    const { moments, observed } = this.#history
    const { log, state } = moments[observed.records]!
    return this.#candidates.some((moment) => {
      if (log !== moment.log) return true
      // The end of a closed stream ends the session.
      return !state.isClosed && this.#leftOut(moment, state.tail) === undefined
    })
  }

  deliver({ records, count, lastSeqNum, tail }: ReadBatch): void {
    const last = records.at(-1)
    if (last === undefined || records.length !== count || last.seqNum !== lastSeqNum)
      throw new Violation('the metadata of a batch matches its records', `${count} up to ${lastSeqNum}`)
    let progress: Progress | undefined
    this.#filter('delivers every record once and in order', (moment) => {
      const before = this.#progressFrom(moment)
      const reached = deliveredFrom(
        moment.log!.records,
        before,
        records,
        this.#visibilityAt(moment),
        this.#query.count,
      )
      if (typeof reached === 'string') return reached
      progress ??= reached
      return undefined
    })
    this.#progress = progress
    const { log } = this.#candidates[0]!
    this.#waitingSince = Math.max(this.#waitingSince, this.#history.momentOf(log!, lastSeqNum).at)
    if (tail === undefined) return
    const wasTail = this.#momentsOf(log!).some(
      ({ state, tailTimestamp }) =>
        state.tail === tail.seqNum &&
        tailTimestamp === tail.timestamp &&
        state.isClosed === (tail.closed ?? false),
    )
    if (wasTail && tail.seqNum >= progress!.next) return
    throw new Violation('a batch has a tail that the stream had', `${tail.seqNum} at ${tail.timestamp}`)
  }

  /** Checks the end of the session, now. `idle` spans the time since its last event. */
  end(idle: ClockWindow, now: number): void {
    this.#filter('ends at a bound, when it has waited, or with its stream', (moment) => {
      const omitted = this.#leftOut(moment, moment.state.tail)
      const { count } = this.#progressFrom(moment)
      if (omitted !== undefined || isBounded(this.#query, 'session', count)) return omitted
      const isClosed = this.#momentsOf(moment.log!).some(({ state }) => state.isClosed)
      if (isClosed && this.#leftOut(moment, moment.log!.records.length) === undefined) return undefined
      // It waits from when the last batch was delivered to it, not from when that was taken. The clock may
      // have been set back meanwhile.
      const waitedMs = Math.max(now - this.#waitingSince, idle.max - idle.min)
      return waitedMs >= waitOf(this.#query, 'session') ? undefined : `it waited only ${waitedMs} ms`
    })
  }

  /** Keeps the moments that nothing contradicts. */
  #filter(expected: string, contradiction: (moment: Moment) => string | undefined): void {
    const problems = this.#candidates.map((moment) => ({ moment, problem: contradiction(moment) }))
    this.#candidates = problems.filter(({ problem }) => problem === undefined).map(({ moment }) => moment)
    if (this.#candidates.length > 0) return
    const clauses = problems.map(({ moment, problem }) => `opened at version ${moment.version}: ${problem}`)
    throw new Violation(
      `a session of ${JSON.stringify(this.#query)} ${expected}`,
      clauses.slice(-8).join('; '),
    )
  }

  #momentsOf(log: StoredLog): readonly Moment[] {
    return this.#history.moments.filter((moment) => moment.log === log)
  }

  #progressFrom(moment: Moment): Progress {
    return this.#progress ?? { next: startOf(this.#query, moment) ?? moment.state.tail, count: 0 }
  }

  #visibilityAt(moment: Moment): (record: StoredRecord) => ReturnType<typeof visibilityOf> {
    return (record) => visibilityOf(record, moment, this.#opening)
  }

  #leftOut(moment: Moment, end: number): string | undefined {
    const { next, count } = this.#progressFrom(moment)
    if (isBounded(this.#query, 'session', count)) return undefined
    return leftOut(moment.log!.records, next, end, this.#visibilityAt(moment))
  }

  /** Returns why a session requested at this moment cannot have been opened, as a clause. */
  #openingContradiction(moment: Moment): string | undefined {
    if (moment.log === undefined) return 'there is no stream'
    if (startOf(this.#query, moment) === undefined) return `the tail is ${moment.state.tail}`
    if (waitOf(this.#query, 'session') > 0) return undefined
    const there = visibilitiesIn(this.#query, moment, this.#opening)
    return there.has('must') || there.has('may') ? undefined : 'there is nothing to read'
  }
}
