import type { ReadEvent, RecordCursor } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { onAbort, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import type { StreamChange } from '../../src/sync/changes.ts'
import { codeOf } from '../../src/sync/failures.ts'
import { ownNonces } from '../../src/sync/outbox.ts'
import { type PendingEntry, pendingAt } from '../../src/sync/pending.ts'
import type { Mirror } from './mirror.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxLog } from './outbox-log.ts'

/** @internal The parts of a synced stream that views read. */
export interface ViewedParts {
  readonly mirror: Pick<Mirror, 'local' | 'state$'>
  readonly outbox: Pick<Outbox, 'device' | 'loaded' | 'closing' | 'subscribe'> & {
    readonly log: Pick<OutboxLog, 'state' | 'catchUp' | 'found'>
  }
}

/** A change in bytes. */
export type RecordChange = StreamChange<SequencedRecord, PendingEntry>

/** What happens to the local copy: it has records, it was replaced or deleted, or there is none. */
type CopyEvent = ReadEvent | { readonly kind: 'reset' } | { readonly kind: 'missing' }

/**
 * @internal Reads the local copy of a stream and its outbox as one series of changes. Waits while there is no
 * local copy, or nothing can follow its records, and begins again if it is replaced.
 */
export class ChangeReader {
  readonly #local: Stream
  readonly #outbox: ViewedParts['outbox']
  readonly #query: ReadQuery
  readonly #signal: AbortSignal | undefined
  readonly #events: AsyncGenerator<CopyEvent, void, undefined>
  readonly #unsubscribe: () => void
  #cursor: RecordCursor | undefined
  /** The event that was read and not passed on yet, as a promise that has settled. */
  #arrival: Promise<IteratorResult<CopyEvent, void>> | undefined
  #isPulling = false
  /** What is known of the copy. */
  #copy: 'nothing' | 'missing' | 'read' = 'nothing'
  /** Whether the outbox may have changed since the last change. */
  #isStale = true
  #isReset = false
  #isEnded = false
  /** Whether the outbox or the mirror may have changed since the local copy was looked up. */
  #hasChanged = false
  #wakeCopy: (() => void) | undefined
  #wake: (() => void) | undefined
  /** The change that was passed on last. */
  #last: RecordChange | undefined

  constructor({ mirror, outbox }: ViewedParts, query: ReadQuery, signal: AbortSignal | undefined) {
    this.#local = mirror.local
    this.#outbox = outbox
    this.#query = query
    this.#signal = signal
    this.#events = this.#readCopies()
    const onChange = () => {
      this.#isStale = this.#hasChanged = true
      this.#wakeCopy?.()
      this.#wake?.()
    }
    // A copy that is missing may exist after a change of the mirror.
    const states = mirror.state$.subscribe(onChange)
    // A reader without a copy has no cursor that ends with the engine.
    const ignoreClosing = onAbort(this.#local.context.closing, onChange)
    const cancels = [outbox.subscribe(onChange), ignoreClosing, () => states.unsubscribe()]
    this.#unsubscribe = () => {
      for (const cancel of cancels) cancel()
    }
    cancels.push(onAnyAbort([signal], () => this.close()))
  }

  /**
   * Resolves to the next change, or to undefined at a bound of the query and once the signal has aborted. One
   * call at a time.
   */
  async next(): Promise<RecordChange | undefined> {
    try {
      if (this.#outbox.device === undefined) await unlessAborted(this.#signal, this.#outbox.loaded)
      while (!this.#isEnded) {
        const change = await this.#step()
        if (change === undefined) continue
        this.#last = change
        return change
      }
    } catch (error) {
      if (!this.#isEnded) throw error
    }
    return undefined
  }

  /** Ends the reads. */
  close(): void {
    this.#isEnded = true
    this.#unsubscribe()
    this.#cursor?.close()
    this.#wakeCopy?.()
    this.#wake?.()
  }

  /** Waits for an event or a change of the outbox, and returns the change that it leads to. */
  async #step(): Promise<RecordChange | undefined> {
    const arrival = this.#arrival
    if (arrival !== undefined) {
      this.#arrival = undefined
      const { done, value } = await arrival
      if (done) this.#isEnded = true
      else return this.#received(value)
    } else if (this.#isStale && this.#copy !== 'nothing') {
      return this.#changed([], this.#last?.position ?? 0, this.#last?.isCaughtUp ?? true)
    } else {
      this.#pull()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return undefined
  }

  #pull(): void {
    if (this.#isPulling) return
    this.#isPulling = true
    const arrival = this.#events.next()
    const arrive = () => {
      this.#isPulling = false
      this.#arrival = arrival
      this.#wake?.()
    }
    arrival.then(arrive, arrive)
  }

  /** Yields what happens to the local copies, one after the other. */
  async *#readCopies(): AsyncGenerator<CopyEvent, void, undefined> {
    let identity: string | undefined
    while (!this.#isEnded) {
      this.#hasChanged = false
      try {
        // Looked up first: a copy that replaces this one must not be mistaken for it.
        const current = await this.#lookUp(identity)
        if (current !== identity) {
          if (identity !== undefined) yield { kind: 'reset' }
          identity = current
          yield* this.#readCopy()
          if (!isUnbounded(this.#query)) return
          continue
        }
      } catch (error) {
        const isDeleted = codeOf(error) === 'stream_deleted'
        if (!isDeleted && !isStreamMissing(error)) throw error
        if (identity !== undefined) yield { kind: 'reset' }
        identity = undefined
        if (isDeleted) continue
        yield { kind: 'missing' }
      }
      await this.#nextChange()
    }
  }

  async #lookUp(known: string | undefined): Promise<string> {
    try {
      return await this.#local.identity()
    } catch (error) {
      if (known !== undefined && HeadwaterError.is(error) && error.retryable) return known
      throw error
    }
  }

  /** Yields the events of the copy until it is closed, or a bound of the query is reached. */
  async *#readCopy(): AsyncGenerator<ReadEvent, void, undefined> {
    // A copy may have its start later.
    const clamp = this.#query.clamp || isUnbounded(this.#query)
    const query = { ...this.#query, clamp, waitMs: Number.POSITIVE_INFINITY }
    // An idle view must not be woken by further heartbeats.
    const cursor = await this.#local.openCursor(query, { heartbeats: 'first', allowsEmpty: 'always' })
    this.#cursor = cursor
    try {
      while (!this.#isEnded) {
        const event = await cursor?.next()
        if (event === undefined) return
        yield event
      }
    } finally {
      cursor?.close()
    }
  }

  async #nextChange(): Promise<void> {
    while (!this.#hasChanged && !this.#isEnded) {
      await new Promise<void>((resolve) => {
        this.#wakeCopy = resolve
      })
    }
  }

  async #received(event: CopyEvent): Promise<RecordChange | undefined> {
    const { log } = this.#outbox
    // What a copy has received, and that it was replaced, is noted before it changes, in any tab.
    if (event.kind !== 'reset' && this.#copy !== 'read') await log.catchUp(this.#signal)
    if (event.kind === 'missing') {
      this.#copy = 'missing'
      this.#isStale = true
      return undefined
    }
    if (event.kind === 'reset') {
      this.#copy = 'nothing'
      this.#isReset = true
      this.#last = undefined
      return undefined
    }
    const { records, tail, lastSeqNum } =
      event.kind === 'batch' ? event.batch : { ...event, records: [], lastSeqNum: event.tail.seqNum - 1 }
    const position = lastSeqNum + 1
    this.#copy = 'read'
    await log.found(records, 0, this.#signal)
    const start = position > (this.#last?.position ?? 0) ? (records[0]?.seqNum ?? position) : undefined
    return this.#changed(records, position, tail?.seqNum === position, start)
  }

  /** Returns the change since the last one, or undefined if there is none. */
  #changed(
    records: readonly SequencedRecord[],
    position: number,
    isCaughtUp: boolean,
    start?: number,
  ): RecordChange | undefined {
    this.#isStale = false
    const last = this.#last
    const { device, log } = this.#outbox
    const pending = pendingAt(log.state, position, last?.pending ?? [], ownNonces(records, device!))
    const isSame =
      last?.isCaughtUp === isCaughtUp &&
      last.pending.length === pending.length &&
      last.pending.every((item, index) => item === pending[index])
    if (isSame && start === undefined) return undefined
    const isReset = this.#isReset
    this.#isReset = false
    const confirmed = this.#fromStart(records)
    return { ...(isReset && { isReset }), start, confirmed, position, pending, isCaughtUp }
  }

  /** Leaves out records before the start, of which a copy may have no others yet. */
  #fromStart(records: readonly SequencedRecord[]): readonly SequencedRecord[] {
    const { seqNum: from = 0, timestamp: since = 0, clamp } = this.#query
    if (clamp) return records
    return records.filter(({ seqNum, timestamp }) => seqNum >= from && timestamp >= Number(since))
  }
}

function isUnbounded({ count, bytes, until }: ReadQuery): boolean {
  return (count ?? bytes ?? until) === undefined
}
