import { Observable, Subject } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { JsonRecord } from '../../src/api/json-codec.ts'
import type { JsonStream } from '../../src/api/json-stream.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { TextRecord } from '../../src/model/record.ts'
import { assertInteger } from '../../src/model/validation.ts'
import { onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { Condition } from '../../src/runtime/condition.ts'
import type { ChangeSource, StreamChange } from '../../src/sync/changes.ts'
import {
  type FoldedRecord,
  type FoldState,
  foldChange,
  foldStateAt,
  startOfChanges,
} from '../../src/sync/fold.ts'
import { assertFoldOptions, type FoldOptions } from './options.ts'
import { FoldSnapshots } from './snapshots.ts'
import { type FoldSource, foldSourceOf } from './source.ts'

/**
 * Keeps a value derived from all records of a stream: loads the last snapshot, reads the records since then,
 * and follows. Records that are pending in a synced stream are applied on top of the confirmed ones. Command
 * records are skipped. Throws `invalid` for options that break a rule.
 *
 * ```ts
 * const sum = fold(stream.json<number>(), {
 *   initial: 0,
 *   reduce: (total, { value }) => total + value,
 *   version: 1,
 * })
 * sum.value$.subscribe((total) => console.log(total))
 * ```
 */
export function fold<State>(source: Stream, options: FoldOptions<State, TextRecord>): Fold<State>
export function fold<State, Value, Input>(
  source: JsonStream<Value, Input>,
  options: FoldOptions<State, JsonRecord<Value>>,
): Fold<State>
export function fold<State, Confirmed extends FoldedRecord, Pending>(
  source: ChangeSource<Confirmed, Pending>,
  options: FoldOptions<State, Confirmed | Pending>,
): Fold<State>
export function fold(
  source: Stream | JsonStream<unknown, never> | ChangeSource<unknown, unknown>,
  options: FoldOptions<unknown, never>,
): Fold<unknown> {
  assertFoldOptions(options)
  return new Fold(foldSourceOf(source, options.create ?? false), options)
}

/** The reason why a fold has ended. A closed one keeps its last value. */
interface FoldEnd {
  readonly error: unknown
  readonly isClosed: boolean
}

/**
 * A value derived from all records of a stream, returned by `fold`.
 *
 * It ends with an error that `value$` and the promises report: `reducer_failed` and `history_trimmed`, and
 * those of a read of the stream, such as `stream_not_found`, `stream_deleted`, `undecodable_record`, `closed`
 * and `storage`. It does not restart: create a new fold.
 */
export class Fold<State> {
  readonly #source: FoldSource<FoldedRecord, unknown>
  readonly #options: FoldOptions<State, never>
  #snapshots: FoldSnapshots<State>
  readonly #values = new Subject<State>()
  readonly #following = new AbortController()
  readonly #done: Promise<void>
  #ignoreSignal = () => {}
  readonly #changes = new Condition()
  #state: FoldState<State>
  #isLoaded = false
  #closing: Promise<void> | undefined
  #end: FoldEnd | undefined

  /** @internal */
  constructor(source: FoldSource, options: FoldOptions<State, never>) {
    this.#source = source as FoldSource<FoldedRecord, unknown>
    this.#options = options
    this.#state = foldStateAt(options.initial)
    this.#snapshots = this.#newSnapshots()
    this.#done = this.#run()
    this.#ignoreSignal = onAnyAbort([options.signal], (error) => this.#finish({ error, isClosed: false }))
  }

  /** The value of all records that were reduced so far, pending ones included. */
  get value(): State {
    return this.#state.value
  }

  /** The value without pending records: the one at `position`. */
  get confirmedValue(): State {
    return this.#state.confirmed
  }

  /**
   * The sequence number after the last confirmed record that was reduced. As `matchSeqNum` of an append, it
   * makes sure that the append is based on the newest value.
   */
  get position(): number {
    return this.#state.position
  }

  /**
   * Emits the value once everything that is stored was reduced, and again when it changes. A late subscriber
   * gets the current value first. Completes when the fold or its stream is closed, fails when it ends with an
   * error.
   */
  get value$(): Observable<State> {
    return new Observable((subscriber) => {
      if (this.#isLoaded && this.#end?.isClosed !== false) subscriber.next(this.value)
      return this.#values.subscribe(subscriber)
    })
  }

  /**
   * Resolves to the value once everything that is stored was reduced. Rejects with the error that ended the
   * fold, and with `closed` if the fold was closed before.
   */
  loaded(options?: CallOptions): Promise<State> {
    return this.#until(0, signalOf(options))
  }

  /**
   * Resolves to the value once all confirmed records below a sequence number were reduced. Rejects as
   * `loaded` does, with `closed` for a position beyond the end of a closed stream, and with `invalid` for a
   * position that is not an integer.
   *
   * ```ts
   * const count = fold(stream, { initial: 0, reduce: (total) => total + 1, version: 1 })
   * const { end } = await stream.append('one more')
   * console.log(await count.reached(end.seqNum))
   * ```
   */
  async reached(seqNum: number, options?: CallOptions): Promise<State> {
    assertInteger(seqNum, 'seqNum')
    return this.#until(seqNum, signalOf(options))
  }

  /**
   * Stops following. Stores one more snapshot if there are enough new records, and waits for it. Never
   * rejects except with the reason of the signal.
   */
  close(options?: CallOptions): Promise<void> {
    const signal = signalOf(options)
    this.#closing ??= this.#close()
    return unlessAborted(signal, this.#closing)
  }

  /** Closes the fold for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    this.#finish({ error: closed('the fold is closed'), isClosed: true })
    await this.#done
    await this.#snapshots.close()
  }

  async #run(): Promise<void> {
    const { signal } = this.#following
    try {
      const restored = await this.#snapshots.load(signal)
      if (restored !== undefined) this.#state = restored
      while (!(await this.#follow(signal))) {
        // The snapshots are those of another stream.
        this.#snapshots.stop(undefined)
        this.#state = foldStateAt(this.#options.initial)
        this.#isLoaded = false
        this.#snapshots = this.#newSnapshots()
      }
      if (this.#end !== undefined) return
      // No record can follow, so the value is final.
      this.#advance(this.#state, true)
      this.#finish({ error: closed('the source of the fold has ended'), isClosed: true })
    } catch (error) {
      this.#finish({ error, isClosed: HeadwaterError.is(error) && error.code === 'closed' })
    }
  }

  #newSnapshots(): FoldSnapshots<State> {
    return new FoldSnapshots(this.#source.stored, this.#options, () => this.#state)
  }

  /** Follows the source. Resolves to false if it is not the stream that the state was derived from. */
  async #follow(signal: AbortSignal): Promise<boolean> {
    const from = startOfChanges(this.#state)
    try {
      for await (const change of this.#source.changes(from, { signal })) {
        if (this.#end !== undefined) break
        if (!this.#take(change)) return false
      }
      return true
    } catch (error) {
      // The stream is shorter than it was.
      if (from > 0 && HeadwaterError.is(error) && error.code === 'range_not_satisfiable') return false
      throw error
    }
  }

  /** Applies a change. Returns false if it is one of another stream. */
  #take(change: StreamChange<FoldedRecord, unknown>): boolean {
    const { reduce, trimmed } = this.#options
    const reducer = reduce as (state: State, record: unknown) => State
    const outcome = foldChange(this.#state, change, reducer, trimmed === 'skip')
    if (outcome.kind === 'replaced') return false
    if (outcome.kind === 'gap') throw this.#trimmedError(outcome)
    this.#advance(outcome.state, change.isCaughtUp)
    return true
  }

  #advance(state: FoldState<State>, isCaughtUp: boolean): void {
    const isFirst = !this.#isLoaded && isCaughtUp
    const isChanged = this.#isLoaded && !Object.is(this.#state.value, state.value)
    this.#state = state
    this.#isLoaded ||= isCaughtUp
    this.#changes.notify()
    if (isFirst || isChanged) this.#values.next(state.value)
    this.#snapshots.onChange(isCaughtUp)
  }

  /** Resolves to the value once everything that is stored, and all records below a position, were reduced. */
  async #until(position: number, signal: AbortSignal | undefined): Promise<State> {
    const isReached = () => {
      const isNow = this.#isLoaded && this.#state.position >= position
      if (this.#end !== undefined && !(isNow && this.#end.isClosed)) throw this.#end.error
      return isNow
    }
    await this.#changes.until(isReached, signal)
    return this.value
  }

  /** Ends the fold. The first end counts. */
  #finish(end: FoldEnd): void {
    if (this.#end !== undefined) return
    const { error, isClosed } = end
    this.#end = end
    this.#ignoreSignal()
    this.#following.abort(error)
    this.#changes.notify()
    if (isClosed) {
      this.#values.complete()
      return
    }
    this.#snapshots.stop(error)
    this.#values.error(error)
  }

  #trimmedError({ from, to }: { readonly from: number; readonly to: number }): HeadwaterError {
    const message =
      `records ${from} to ${to - 1} were trimmed before the fold read them, and no snapshot covers them; ` +
      "store them again, or pass `trimmed: 'skip'` to continue with the remaining records"
    return new HeadwaterError('history_trimmed', message, { seqNum: to, cause: this.#snapshots.loadError })
  }
}

function closed(message: string): HeadwaterError {
  return new HeadwaterError('closed', message)
}
