import type { StreamConfig } from '../../src/index.ts'
import { EMPTY_STREAM, type StreamState } from '../linearizability/stream-model.ts'
import type { AppendAttempt } from './append-attempt.ts'
import type { StoredLog } from './stored-log.ts'
import { Violation } from './violation.ts'

/** All that was to be known of a stream at one time. */
export interface Moment {
  readonly version: number
  /** Undefined while there was no stream of that name. */
  readonly log: StoredLog | undefined
  readonly config: StreamConfig | undefined
  readonly epoch: number
  /** Tail and fencing token, as the sequential model has them. */
  readonly state: StreamState
  readonly tailTimestamp: number
  readonly trimPoint: number
  /** When the trim was made that the trim point comes of. */
  readonly trimmedAt: number
  /** When something was last written: an append, or the stream itself. */
  readonly writtenAt: number
}

const MISSING: Omit<Moment, 'version'> = {
  log: undefined,
  config: undefined,
  epoch: 0,
  state: EMPTY_STREAM,
  tailTimestamp: 0,
  trimPoint: 0,
  trimmedAt: 0,
  writtenAt: 0,
}

/**
 * What a stream went through, one change after the other, as it was seen in the storage. An operation comes between its call and its return, so what it tells must be true of a
 * moment from the last one that anybody had heard of when it was called, to that of its return.
 */
export class StreamHistory {
  readonly name: string
  readonly moments: Moment[] = [{ version: 0, ...MISSING }]
  /** The latest versions that calls that returned told of: of the records, and of the configuration, which is another object. */
  readonly observed = { records: 0, config: 0 }
  /** Whether one incarnation of it ever went. */
  wasDeleted = false
  /** Deletions that were asked for and may still happen. */
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
   * The first moment since that version of which it is true; from now on nobody may be told of an earlier one. `objection` gives half a sentence that says why it is not.
   */
  observe(
    what: 'records' | 'config',
    since: number,
    expected: string,
    found: string,
    objection: (moment: Moment) => string | undefined,
  ): Moment {
    const objections: string[] = []
    for (const moment of this.moments.slice(since)) {
      const problem = objection(moment)
      if (problem === undefined) {
        this.#tell(what, moment)
        return moment
      }
      objections.push(`at version ${moment.version} of \`${this.name}\`: ${problem}`)
    }
    throw new Violation(
      `${expected}, at some moment of the call`,
      [found, ...objections.slice(-8)].join('; '),
    )
  }

  /** An append that is acknowledged has been observed, and so is everything before it. */
  observeStored({ stored }: AppendAttempt): void {
    const moment = this.moments.find(({ log, state }) => log === stored!.log && state.tail > stored!.seqNum)
    this.#tell('records', moment!)
  }

  #tell(what: 'records' | 'config', { log, version }: Moment): void {
    this.observed[what] = Math.max(this.observed[what], version)
    // Who sees the records of a stream sees that it is there.
    const first = log === undefined ? version : this.moments.find((moment) => moment.log === log)!.version
    this.observed.config = Math.max(this.observed.config, first)
  }
}
