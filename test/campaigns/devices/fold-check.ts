import type { Subscription } from 'rxjs'
import { type Fold, type FoldOptions, fold } from '../../../adapters/fold/index.ts'
import type { SyncedStream } from '../../../adapters/sync/index.ts'
import { HeadwaterError, type Stream } from '../../../src/index.ts'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import { isCommandShaped } from '../../../src/model/command.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import { Violation } from '../simulation/violation.ts'
import type { Sabotage } from './sabotage.ts'
import type { Life } from './server.ts'

interface FoldedRecord {
  /** Null while the record is pending. */
  readonly seqNum: number | null
  readonly key: string
  readonly text: string
}

/** The value of the folds: every record, in the order in which they were reduced. */
export interface FoldedRecords {
  /** The version of the reducers of all records. */
  readonly version: number
  readonly records: readonly FoldedRecord[]
}

/** What a reducer gets: a record of a stream, or one of a synced stream. */
interface Reducible {
  readonly seqNum?: number | undefined
  readonly key?: string | undefined
  readonly body: string
}

export type FoldReducer = (state: FoldedRecords, record: Reducible) => FoldedRecords

export interface FoldCheckOptions {
  readonly name: string
  readonly source: SyncedStream | Stream
  /** The version that the fold is given. */
  readonly version: number
  /** The version of the reducer. */
  readonly reducer: number
  readonly snapshotEvery: number
  readonly trimmed: 'fail' | 'skip'
  readonly sabotage: Sabotage
  readonly prng: Prng
  readonly note: (line: string) => void
}

/** Errors after which an app makes another fold: there is no copy yet, or it was begun again. */
const WITHOUT_COPY = ['stream_not_found', 'basin_not_found', 'stream_deleted']

/**
 * A fold of a tab whose value contains every record, and its checks: each value has every record once, the
 * confirmed ones in the order of the server and then the pending ones in that of the device.
 */
export class FoldCheck {
  readonly #options: FoldCheckOptions
  #trimmed: 'fail' | 'skip'
  #fold!: Fold<FoldedRecords>
  #watching: Subscription | undefined
  #reduced = 0
  #isEnded = false
  #isLoaded = false
  /** The failure of the fold or of a check. */
  failure: unknown
  /** The first sequence number left, if the fold has ended because others were trimmed. */
  trimmedTo: number | undefined

  constructor(options: FoldCheckOptions) {
    this.#options = options
    this.#trimmed = options.trimmed
    this.#open()
  }

  get name(): string {
    return this.#options.name
  }

  get fold(): Fold<FoldedRecords> {
    return this.#fold
  }

  /** Makes another fold if this one has ended, as an app does. */
  reopen(): void {
    if (!this.#isEnded) return
    if (this.trimmedTo !== undefined) this.#trimmed = 'skip'
    this.trimmedTo = undefined
    this.#open()
  }

  stop(): void {
    this.#watching?.unsubscribe()
  }

  close(): Promise<void> {
    this.stop()
    return this.#fold.close()
  }

  /** Throws unless the confirmed value is the reduction of a life of the stream up to the position. */
  checkConfirmed(lives: readonly Life[], startsLate: boolean): void {
    const { position, confirmedValue } = this.#fold
    const differences = lives.map((life) => this.#differenceFrom(life, position, confirmedValue, startsLate))
    if (position === 0 || differences.includes(undefined)) return
    throw new Violation(`the fold ${this.name} equals the reduction`, differences.at(-1)!)
  }

  #differenceFrom(
    { records, trimmedTo }: Life,
    position: number,
    { records: folded }: FoldedRecords,
    startsLate: boolean,
  ): string | undefined {
    if (position > records.length) return `the position ${position} of ${records.length} records`
    const first = folded[0]?.seqNum ?? position
    // What was trimmed before the fold read it, and the records before a copy of the end, are left out.
    const complete = this.#trimmed === 'fail' ? 0 : Math.max(trimmedTo, startsLate ? first : 0)
    let index = 0
    for (const record of records.slice(0, position)) {
      const { seqNum, body, headers } = record
      const isFolded = folded[index]?.seqNum === seqNum
      if (!isFolded && (seqNum < complete || isCommandShaped(headers))) continue
      if (!isFolded || isCommandShaped(headers))
        return `${describe(folded[index])} instead of record ${seqNum}`
      const { text } = folded[index++]!
      if (text !== lossyTextOf(body)) return `\`${text}\` instead of \`${lossyTextOf(body)}\` at ${seqNum}`
    }
    return index === folded.length ? undefined : `${describe(folded[index])} behind all others`
  }

  /** Throws unless the fold has these confirmed records, and others only before them. */
  checkCopy(copy: readonly SequencedRecord[], tail: number): void {
    const { position, value } = this.#fold
    if (position !== tail)
      throw new Violation(`the fold ${this.name} reaches the end`, `${position} of ${tail}`)
    const stored = copy.filter(({ headers }) => !isCommandShaped(headers)).map(({ seqNum }) => seqNum)
    const folded = value.records.map(({ seqNum }) => seqNum).slice(-stored.length || value.records.length)
    if (stored.join() === folded.join()) return
    throw new Violation(`the fold ${this.name} has the records of its copy`, `${folded}, not ${stored}`)
  }

  /** Whether the fold has reduced what was stored when it began. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  #open(): void {
    const { source, version, reducer, snapshotEvery, sabotage, prng, name, note } = this.#options
    this.#isEnded = false
    this.#reduced = 0
    const reduce: FoldReducer = (state, record) => this.#reduce(state, record)
    const { restored } = sabotage
    const options: FoldOptions<FoldedRecords, Reducible> = {
      name: `${'outbox' in source ? 'synced' : 'copy'}-${this.#trimmed}`,
      initial: { version: reducer, records: [] },
      reduce: sabotage.reduce?.(reduce, prng) ?? reduce,
      version,
      snapshotEvery,
      trimmed: this.#trimmed,
      ...(restored !== undefined && {
        encode: (state: FoldedRecords) => state,
        decode: (state: FoldedRecords) => restored(state, prng),
      }),
    }
    this.#fold = 'outbox' in source ? fold(source, options) : fold(source, options)
    this.#isLoaded = false
    this.#watching = this.#fold.value$.subscribe({
      next: (value) => {
        const { length } = this.#fold.confirmedValue.records
        if (!this.#isLoaded && this.#reduced < length) note(`the fold ${name} begins with a snapshot`)
        this.#isLoaded = true
        try {
          this.#checkValue(value)
        } catch (error) {
          this.failure ??= error
        }
      },
      error: (error: unknown) => this.#ended(error),
    })
  }

  #reduce(state: FoldedRecords, record: Reducible): FoldedRecords {
    const { body } = record
    const seqNum = record.seqNum ?? null
    const key = record.key ?? String(seqNum)
    const { reducer } = this.#options
    this.#reduced++
    if (state.version !== reducer) {
      throw new Violation(`the fold ${this.name} ignores snapshots of other versions`, `${state.version}`)
    }
    return { version: reducer, records: [...state.records, { seqNum, key, text: body }] }
  }

  #checkValue({ records }: FoldedRecords): void {
    const keys = new Set<string>()
    let [last, isPending] = [-1, false]
    for (const { seqNum, key } of records) {
      if (keys.has(key)) {
        const places = records.filter((record) => record.key === key).map((record) => record.seqNum)
        throw new Violation(`the fold ${this.name} reduces a record once`, `${key} at ${places}`)
      }
      keys.add(key)
      if (seqNum === null && !isPending) [last, isPending] = [-1, true]
      const place = seqNum ?? numberOf(key)
      if (place <= last || (isPending && seqNum !== null)) {
        throw new Violation(`the fold ${this.name} reduces records in order`, key)
      }
      last = place
    }
  }

  #ended(error: unknown): void {
    this.#isEnded = true
    this.#isLoaded = false
    const code = HeadwaterError.is(error) ? error.code : undefined
    const cause = (error as { cause?: unknown }).cause
    if (code === 'history_trimmed') this.trimmedTo = (error as HeadwaterError).seqNum!
    else if (code === undefined || !WITHOUT_COPY.includes(code)) {
      this.failure ??= cause instanceof Violation ? cause : error
    }
  }
}

/** Returns the number of a record in the outbox of its device. */
function numberOf(key: string): number {
  return Number(key.slice(key.indexOf('/') + 1))
}

function describe(record: FoldedRecord | undefined): string {
  return record === undefined ? 'the end' : JSON.stringify(record)
}
