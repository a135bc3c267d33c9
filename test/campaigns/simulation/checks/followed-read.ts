import type { ReadBatch, ReadQuery, StreamPosition, StreamTail } from '../../../../src/index.ts'
import type { ClockWindow } from '../engine-clock.ts'
import type { StoredLog, StoredRecord } from '../stored-log.ts'
import type { Moment, StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'
import { visibilityIn } from './check-unary-read.ts'
import {
  boundsOf,
  type Comparison,
  compareRecords,
  type RemainingBounds,
  type Visibility,
} from './compare-records.ts'
import { startOf, waitOf } from './read-start.ts'

/** Checks a read session while it runs: every record once and in order, from its start on. */
export class FollowedRead {
  readonly #history: StreamHistory
  readonly #query: ReadQuery
  readonly #waitMs: number
  /** From the call that opened it to its return. */
  readonly #opening: ClockWindow
  /** The moments at which it may have been opened, according to what was delivered. */
  #candidates: readonly Moment[]
  #bounds: RemainingBounds
  #next: number | undefined

  /** The session was opened between the version observed at its call and now. */
  constructor(history: StreamHistory, query: ReadQuery, since: number, opening: ClockWindow) {
    this.#history = history
    this.#query = query
    this.#waitMs = waitOf(query, 'session')
    this.#opening = opening
    this.#bounds = boundsOf(query, 'session')
    const moments = history.moments.slice(since)
    this.#candidates = moments.filter((moment) => openingContradiction(query, moment, opening) === undefined)
    if (this.#candidates.length > 0) return
    const reasons = moments.map((moment) => openingContradiction(query, moment, opening)).slice(-8)
    throw new Violation(`a session of ${this.#queryText} is refused: ${reasons.join('; ')}`, 'it was opened')
  }

  get #queryText(): string {
    return JSON.stringify(this.#query)
  }

  /** The incarnation that it reads. */
  get log(): StoredLog {
    return this.#candidates.at(-1)!.log!
  }

  /** Whether it has delivered every observed record. */
  get isCaughtUp(): boolean {
    const { moments, observed } = this.#history
    const lastObserved = moments[observed.records]!
    return this.#candidates.some((moment) => {
      const isSame = lastObserved.log === moment.log
      const end = isSame ? lastObserved.state.tail : 0
      // The end of a closed stream ends the session.
      if (isSame && lastObserved.rules.isClosed) return false
      return typeof this.#compare(moment, [], end) !== 'string'
    })
  }

  deliver({ records, count, lastSeqNum, tail }: ReadBatch): void {
    const last = records.at(-1)
    if (last === undefined || records.length !== count || last.seqNum !== lastSeqNum) {
      throw new Violation('the metadata of a batch matches its records', `${count} up to ${lastSeqNum}`)
    }
    const comparison = this.#filterCandidates(
      `a session of ${this.#queryText} delivers every record once and in order`,
      (moment) => this.#compare(moment, records, 0),
    )
    this.#next = comparison.next
    this.#bounds = comparison.bounds
    if (tail !== undefined) this.#checkTail(tail)
  }

  /** Checks the end of the session. `idle` spans the time since its last event. */
  end(idle: ClockWindow): void {
    this.#filterCandidates(
      `a session of ${this.#queryText} ends at a bound, when it has waited, or with its stream`,
      (moment) => {
        const comparison = this.#compare(moment, [], moment.state.tail)
        if (typeof comparison === 'string' || comparison.isBounded) return comparison
        const atEnd = this.#compare(moment, [], moment.log!.records.length)
        const isClosed = this.#history.moments.some(({ log, rules }) => log === moment.log && rules.isClosed)
        if (typeof atEnd !== 'string' && (atEnd.isBounded || isClosed)) return atEnd
        // The clock may have been set back meanwhile.
        const waitedMs = Math.max(idle.elapsedMs, idle.max - idle.min)
        return waitedMs >= this.#waitMs ? comparison : `it waited only ${waitedMs} ms`
      },
    )
  }

  /** Keeps the moments that are consistent with the delivered records. */
  #filterCandidates(expected: string, compare: (moment: Moment) => Comparison | string): Comparison {
    const comparisons = this.#candidates.map((moment) => ({ moment, comparison: compare(moment) }))
    const consistent = comparisons.filter(({ comparison }) => typeof comparison !== 'string')
    const first = consistent[0]
    if (first === undefined) {
      const contradictions = comparisons.map(
        ({ moment, comparison }) => `opened at version ${moment.version}: ${comparison}`,
      )
      throw new Violation(expected, contradictions.slice(-8).join('; '))
    }
    this.#candidates = consistent.map(({ moment }) => moment)
    return first.comparison as Comparison
  }

  #compare(moment: Moment, records: ReadBatch['records'], end: number): Comparison | string {
    const from = this.#next ?? fromOf(this.#query, moment)
    return compareRecords(
      moment.log!.records,
      from,
      end,
      records,
      visibilityIn(moment, this.#opening),
      this.#bounds,
    )
  }

  #checkTail({ seqNum, timestamp, closed }: StreamTail): void {
    const { log } = this
    const wasTail = this.#history.moments.some(
      (moment) =>
        moment.log === log &&
        moment.state.tail === seqNum &&
        moment.tailTimestamp === timestamp &&
        moment.rules.isClosed === (closed ?? false),
    )
    if (wasTail && seqNum >= this.#next!) return
    throw new Violation('a batch has a tail that the stream had', `${seqNum} at ${timestamp}`)
  }
}

function fromOf(query: ReadQuery, moment: Moment): number {
  const start = startOf(query, moment)
  return typeof start === 'string' ? moment.state.tail : start.seqNum
}

function visibilitiesAt(query: ReadQuery, moment: Moment, clock: ClockWindow): Visibility[] {
  const stored: readonly StoredRecord[] = moment.log!.records.slice(fromOf(query, moment), moment.state.tail)
  return stored.map(visibilityIn(moment, clock))
}

/** Returns why a session requested at this moment cannot have been opened (rule 9), as a clause. */
function openingContradiction(query: ReadQuery, moment: Moment, clock: ClockWindow): string | undefined {
  if (moment.log === undefined) return 'there is no stream'
  if (startOf(query, moment) === 'beyond the tail') return `the tail is ${moment.state.tail}`
  if (waitOf(query, 'session') > 0) return undefined
  const visibilities = visibilitiesAt(query, moment, clock)
  return visibilities.every((visibility) => visibility === 'never') ? 'there is nothing to read' : undefined
}

/**
 * Returns why a session requested at this moment cannot have been rejected with 416 and this tail, as a
 * clause.
 */
export function rejectionContradiction(
  query: ReadQuery,
  tail: StreamPosition,
  moment: Moment,
  clock: ClockWindow,
): string | undefined {
  if (moment.log === undefined) return 'there is no stream'
  if (tail.seqNum !== moment.state.tail) return `the tail is ${moment.state.tail}`
  if (startOf(query, moment) === 'beyond the tail') return undefined
  if (waitOf(query, 'session') > 0) return 'it had to wait'
  return visibilitiesAt(query, moment, clock).includes('must') ? 'there is something to read' : undefined
}
