import type { Subscription } from 'rxjs'
import { type Fold, fold } from '../../../adapters/fold/index.ts'
import type { SyncedStream } from '../../../adapters/sync/index.ts'
import { HeadwaterError } from '../../../src/index.ts'
import { Violation } from '../harness/violation.ts'
import { type StoredLog, textOf } from '../model/stream-history.ts'
import { isCommand } from './checks.ts'

/** The value of the fold: every record, in the order in which they were reduced. */
interface FoldedRecord {
  /** Null while the record is pending. */
  readonly seqNum: number | null
  readonly key: string
  readonly text: string
}

/** Errors after which an app makes another fold: there is no copy yet, or it was begun again. */
const WITHOUT_COPY = ['stream_not_found', 'basin_not_found', 'stream_deleted']

/** A fold of a tab whose value contains every record, and its checks. */
export class FoldCheck {
  readonly #source: SyncedStream
  readonly #snapshotEvery: number
  #trimmed: 'fail' | 'skip'
  #fold!: Fold<readonly FoldedRecord[]>
  #watching: Subscription | undefined
  #isEnded = false
  /** Whether it has reduced what was stored when it began. */
  #isLoaded = false
  failure: unknown
  /** The first sequence number left, if the fold has ended because others were trimmed. */
  trimmedTo: number | undefined

  constructor(source: SyncedStream, snapshotEvery: number, trimmed: 'fail' | 'skip') {
    this.#source = source
    this.#snapshotEvery = snapshotEvery
    this.#trimmed = trimmed
    this.#open()
  }

  get position(): number {
    return this.#fold.position
  }

  /** The keys of the records of the value, if the fold is loaded. */
  get keys(): readonly string[] | undefined {
    return this.#isLoaded ? this.#fold.value.map(({ key }) => key) : undefined
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

  /**
   * Throws unless the confirmed value is the reduction of a life of the stream up to the position. Records
   * may be left out that were trimmed before the fold read them, and those before a copy of the end.
   */
  checkConfirmed(lives: readonly StoredLog[], startsLate: boolean): void {
    const { position, confirmedValue } = this.#fold
    const found = confirmedValue.map(({ seqNum, text }) => `${seqNum} ${text}`).join()
    const seqNums = new Set(confirmedValue.map(({ seqNum }) => seqNum))
    const first = confirmedValue[0]?.seqNum ?? position
    const reductions = lives.map(({ records, trimPoint }) => {
      const complete = this.#trimmed === 'fail' ? 0 : Math.max(trimPoint, startsLate ? first : 0)
      return records
        .slice(0, position)
        .filter(({ seqNum, headers }) => !isCommand(headers) && (seqNum >= complete || seqNums.has(seqNum)))
        .map(({ seqNum, body }) => `${seqNum} ${textOf(body)}`)
        .join()
    })
    if (position === 0 || reductions.includes(found)) return
    throw new Violation(`a fold equals the reduction: ${reductions.at(-1)}`, `${found}, up to ${position}`)
  }

  #open(): void {
    this.#isEnded = false
    this.#isLoaded = false
    this.#fold = fold(this.#source, {
      name: this.#trimmed,
      version: 1,
      initial: [] as readonly FoldedRecord[],
      reduce: (records, { seqNum, key, body }) => [...records, { seqNum: seqNum ?? null, key, text: body }],
      snapshotEvery: this.#snapshotEvery,
      trimmed: this.#trimmed,
    })
    this.#watching = this.#fold.value$.subscribe({
      next: () => {
        this.#isLoaded = true
      },
      error: (error: unknown) => {
        this.#isEnded = true
        this.#isLoaded = false
        const { code, seqNum }: Partial<HeadwaterError> = HeadwaterError.is(error) ? error : {}
        if (code === 'history_trimmed') this.trimmedTo = seqNum
        else if (code === undefined || !WITHOUT_COPY.includes(code)) this.failure ??= error
      },
    })
  }
}
