import type { ReadEvent, RecordCursor } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { onAbort, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import type { StreamChange } from '../../src/sync/changes.ts'
import { originOf, parseOrigin, type SecretOrigin } from '../../src/sync/origin.ts'
import {
  EMPTY_OVERLAY,
  markOf,
  type Overlay,
  pendingOf,
  withOutbox,
  withPosition,
  withReached,
} from '../../src/sync/overlay.ts'
import type { PendingEntry, PendingSource } from './pending-source.ts'

/** A change in bytes. */
export type RecordChange = StreamChange<SequencedRecord, PendingEntry>

/**
 * Reads the local copy of a stream and its outbox as one series of changes. Waits while there is no local
 * copy, or nothing can follow its records, and begins again if it is replaced.
 */
export class ChangeReader {
  readonly #local: Stream
  readonly #source: PendingSource
  readonly #query: ReadQuery
  readonly #signal: AbortSignal | undefined
  /** Keys of records that were confirmed before the start of the read, and may be in the outbox. */
  #leaving: readonly string[]
  #unsubscribe: (() => void) | undefined
  #overlay: Overlay<PendingEntry> = EMPTY_OVERLAY
  #cursor: RecordCursor | undefined
  /** The event that was read and not passed on yet, as a promise that has settled. */
  #arrival: Promise<ReadEvent | undefined> | undefined
  #isPulling = false
  /** The local copy is missing or closed, and nothing has happened since that was found. */
  #isAtRest = false
  /** The outbox or the mirror may have changed since the local copy was looked up. */
  #hasChanged = false
  /** The last event has shown that the local copy is closed. */
  #isCopyClosed = false
  /** The identity of the local copy, looked up before the copy was read. */
  #identity: string | undefined
  /** The start of the read is known. */
  #isLocated = false
  /** The outbox may have changed since it was compared with the view. */
  #isStale = true
  #isReset = false
  /** A bound of the query was reached, or the reader was closed. */
  #isEnded = false
  #wake: (() => void) | undefined
  /** The change that was passed on last. */
  #last: RecordChange | undefined

  constructor(
    local: Stream,
    source: PendingSource,
    query: ReadQuery,
    signal: AbortSignal | undefined,
    leaving: readonly string[],
  ) {
    this.#local = local
    this.#source = source
    this.#query = query
    this.#signal = signal
    this.#leaving = leaving
    const onChange = () => {
      this.#isStale = this.#hasChanged = true
      this.#isAtRest = false
      this.#wake?.()
    }
    const unsubscribe = source.subscribe(onChange)
    // A reader at rest has no cursor that ends with the engine.
    const ignoreClosing = onAbort(local.context.closing, onChange)
    const ignoreSignal = onAnyAbort([signal], () => this.close())
    this.#unsubscribe = () => {
      unsubscribe()
      ignoreClosing()
      ignoreSignal()
    }
  }

  /**
   * Resolves to the next change, or to undefined at a bound of the query and once the signal has aborted. One
   * call at a time.
   */
  async next(): Promise<RecordChange | undefined> {
    try {
      if (this.#source.device === undefined) await unlessAborted(this.#signal, this.#source.loaded)
    } catch (error) {
      if (!this.#isEnded) throw error
    }
    while (!this.#isEnded) {
      this.#pull()
      if (this.#hasWork) {
        const change = await this.#step()
        if (change === undefined) continue
        this.#last = change
        return change
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return undefined
  }

  /** Ends the reads. */
  close(): void {
    this.#isEnded = true
    this.#unsubscribe?.()
    this.#wake?.()
    this.#close()
  }

  async #step(): Promise<RecordChange | undefined> {
    const arrival = this.#arrival
    this.#arrival = undefined
    if (arrival === undefined) return this.#changed([], this.#position, this.#last?.isCaughtUp ?? true)
    try {
      const event = await arrival
      if (event !== undefined) return await this.#received(event)
      this.#isEnded ||= !this.#isCopyClosed
    } catch (error) {
      this.#recover(error)
    }
    return undefined
  }

  get #hasWork(): boolean {
    return this.#arrival !== undefined || (this.#isStale && (this.#isLocated || this.#isAtRest))
  }

  get #position(): number {
    return this.#last?.position ?? 0
  }

  #pull(): void {
    if (this.#isPulling || this.#isAtRest || this.#arrival !== undefined) return
    this.#isPulling = true
    const arrival = this.#nextEvent()
    const arrive = () => {
      this.#isPulling = false
      this.#arrival = arrival
      this.#wake?.()
    }
    arrival.then(arrive, arrive)
  }

  async #nextEvent(): Promise<ReadEvent | undefined> {
    if (this.#cursor === undefined) {
      // A copy may have its start later.
      const clamp = this.#query.clamp || isUnbounded(this.#query)
      const query = { ...this.#query, clamp, waitMs: Number.POSITIVE_INFINITY }
      this.#hasChanged = false
      // Looked up first: a copy that replaces this one must not be mistaken for it.
      this.#identity = await this.#local.identity()
      // An idle view must not be woken by further heartbeats.
      this.#cursor = await this.#local.openCursor(query, { heartbeats: 'first', allowsEmpty: 'always' })
      if (this.#isEnded) this.#close()
    }
    const event = await this.#cursor?.next()
    if (event === undefined && this.#isCopyClosed) {
      // Before the look-up, so that a change meanwhile leads to another one.
      this.#isAtRest = true
      const identity = await this.#local.identity().catch((error: unknown) => {
        if (HeadwaterError.is(error) && error.retryable) return this.#identity
      })
      if (identity !== this.#identity) throw new HeadwaterError('stream_deleted', 'the copy was deleted')
    }
    return event
  }

  async #received(event: ReadEvent): Promise<RecordChange | undefined> {
    const { records, tail, lastSeqNum } =
      event.kind === 'batch' ? event.batch : { ...event, records: [], lastSeqNum: event.tail.seqNum - 1 }
    this.#isCopyClosed = tail?.closed === true && isUnbounded(this.#query)
    const position = lastSeqNum + 1
    const first = records[0]?.seqNum ?? position
    if (!this.#isLocated) await this.#locate(first)
    this.#reach(originsOf(records))
    const start = position > this.#position ? first : undefined
    return this.#changed(this.#fromStart(records), position, tail?.seqNum === position, start)
  }

  /** Leaves out records before the start, of which a copy may have no others yet. */
  #fromStart(records: readonly SequencedRecord[]): readonly SequencedRecord[] {
    const { seqNum: from = 0, timestamp: since = 0, clamp } = this.#query
    if (clamp) return records
    return records.filter(({ seqNum, timestamp }) => seqNum >= from && timestamp >= Number(since))
  }

  /** Finds out which records of this device were confirmed before the start of the read. */
  async #locate(start: number): Promise<void> {
    this.#isLocated = true
    this.#reach(this.#leaving.map(parseOrigin))
    this.#leaving = []
    const { examined } = this.#source.content
    if (examined >= start) return
    const query = { seqNum: examined, count: start - examined, clamp: true }
    const before = this.#local.read(query, { as: 'bytes', signal: this.#signal })
    // After a trim, it begins later than it was asked to.
    for await (const { records } of before.batches())
      this.#reach(originsOf(records.filter(({ seqNum }) => seqNum < start)))
  }

  #reach(origins: readonly (SecretOrigin | undefined)[]): void {
    const { device } = this.#source
    const marks: string[] = []
    for (const origin of origins) {
      if (origin !== undefined && origin.device === device) marks.push(markOf(origin))
    }
    if (marks.length === 0) return
    this.#overlay = withReached(this.#overlay, marks)
    // Keeps only those that the outbox may still name.
    this.#isStale = true
  }

  /** Returns the change since the last one, or undefined if there is none. */
  #changed(
    confirmed: readonly SequencedRecord[],
    position: number,
    isCaughtUp: boolean,
    start?: number,
  ): RecordChange | undefined {
    if (this.#isStale) this.#overlay = withOutbox(this.#overlay, this.#source.content)
    this.#isStale = false
    this.#overlay = withPosition(this.#overlay, position)
    const pending = pendingOf(this.#overlay)
    const last = this.#last
    const isSame =
      last?.isCaughtUp === isCaughtUp &&
      last.pending.length === pending.length &&
      last.pending.every(({ item }, index) => item === pending[index]!.item)
    if (isSame && start === undefined) return undefined
    const device = this.#source.device!
    const isReset = this.#isReset
    this.#isReset = false
    const leaving = Array.from(this.#overlay.reached, (mark) => `${device}/${mark}`)
    return { ...(isReset && { isReset }), start, confirmed, position, pending, leaving, isCaughtUp }
  }

  /** Goes on without the copy that was deleted, or does not exist. Throws all other errors. */
  #recover(error: unknown): void {
    this.#close()
    this.#leaving = []
    if (!HeadwaterError.is(error) || this.#signal?.aborted) throw error
    this.#isStale = true
    if (error.code === 'stream_deleted') {
      this.#isReset = true
      this.#last = undefined
      this.#overlay = EMPTY_OVERLAY
    } else if (isStreamMissing(error)) this.#isAtRest = !this.#hasChanged
    else throw error
  }

  #close(): void {
    this.#isLocated = this.#isAtRest = this.#isCopyClosed = false
    this.#cursor?.close()
    this.#cursor = undefined
  }
}

function originsOf(records: readonly SequencedRecord[]): (SecretOrigin | undefined)[] {
  return records.map(({ headers }) => originOf(headers))
}

function isUnbounded({ count, bytes, until }: ReadQuery): boolean {
  return (count ?? bytes ?? until) === undefined
}
