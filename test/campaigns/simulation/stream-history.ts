import type { StreamConfig } from '../../../src/model/config.ts'
import type { StreamDocument } from '../../../src/storage/documents.ts'
import { EMPTY_STREAM, type StreamState } from '../linearizability/stream-model.ts'
import type { StoredPlace } from './append-attempt.ts'
import type { StoredLog } from './stored-log.ts'
import { Violation } from './violation.ts'
import { NO_RULES, type WriteRules } from './write-rules.ts'

/** The state of a stream at one time. */
export interface Moment {
  readonly version: number
  /** Undefined while no stream has this name. */
  readonly log: StoredLog | undefined
  readonly config: StreamConfig | undefined
  readonly epoch: number
  /** Tail and fencing token in the sequential model. */
  readonly state: StreamState
  /** Whether it is closed, its producers and its `streamSeq`. */
  readonly rules: WriteRules
  readonly tailTimestamp: number
  readonly trimPoint: number
  /** The time of the trim that set the trim point. */
  readonly trimmedAt: number
  /** The time of the last append; 0 if there was none. */
  readonly appendedAt: number
  /** The time of the last write: an append, or the creation or configuration of the stream. */
  readonly writtenAt: number
}

const MISSING: Omit<Moment, 'version'> = {
  log: undefined,
  config: undefined,
  epoch: 0,
  state: EMPTY_STREAM,
  rules: NO_RULES,
  tailTimestamp: 0,
  trimPoint: 0,
  trimmedAt: 0,
  appendedAt: 0,
  writtenAt: 0,
}

/**
 * The changes of a stream in the order in which they appeared in the storage. An operation takes effect
 * between its call and its return, so its outcome must be true of a moment between the last one observed
 * before the call and the one at its return.
 */
export class StreamHistory {
  readonly name: string
  readonly moments: Moment[] = [{ version: 0, ...MISSING }]
  /**
   * The latest versions observed by calls that have returned, of the records and of the configuration, which
   * is a separate object.
   */
  readonly observed = { records: 0, config: 0 }
  /** What is stored under its name, which may be reserved for forks only. */
  document: StreamDocument | undefined
  /** Whether an incarnation of the stream was deleted. */
  wasDeleted = false
  /** Deletions that were requested and may still happen. */
  readonly deletions = new Set<object>()

  constructor(name: string) {
    this.name = name
  }

  get now(): Moment {
    return this.moments.at(-1)!
  }

  add(change: Partial<Omit<Moment, 'version'>>): Moment {
    const moment = { ...this.now, ...change, version: this.moments.length }
    this.moments.push(moment)
    return moment
  }

  remove(): void {
    this.wasDeleted = true
    this.add(MISSING)
  }

  /**
   * Returns the first moment since a version for which `objection` returns nothing. From now on, no call may
   * observe an earlier moment. `objection` returns a clause.
   */
  observe(
    kind: 'records' | 'config',
    since: number,
    expected: string,
    found: string,
    contradiction: (moment: Moment) => string | undefined,
  ): Moment {
    const contradictions: string[] = []
    for (const moment of this.moments.slice(since)) {
      const problem = contradiction(moment)
      if (problem === undefined) {
        this.#markObserved(kind, moment)
        return moment
      }
      contradictions.push(`at version ${moment.version} of \`${this.name}\`: ${problem}`)
    }
    throw new Violation(
      `${expected}, at some moment of the call`,
      [found, ...contradictions.slice(-8)].join('; '),
    )
  }

  /** An acknowledged append has been observed, and so has everything before it. */
  observeStored(place: StoredPlace): void {
    const moment = this.moments.find(({ log, state }) => log === place.log && state.tail > place.seqNum)
    this.#markObserved('records', moment!)
  }

  #markObserved(kind: 'records' | 'config', { log, version }: Moment): void {
    this.observed[kind] = Math.max(this.observed[kind], version)
    // Records also prove that their stream exists.
    const first = log === undefined ? version : this.moments.find((moment) => moment.log === log)!.version
    this.observed.config = Math.max(this.observed.config, first)
  }
}
