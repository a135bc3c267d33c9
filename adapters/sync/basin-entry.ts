import type { Observable } from 'rxjs'
import type { RecordFormat } from '../../src/model/record.ts'
import type { OpenStream } from '../../src/sync/basin.ts'
import type { MirrorState } from '../../src/sync/mirror.ts'
import { type SyncedParts, SyncedStream } from './synced-stream.ts'

/** A stream of a synced basin that this tab has open, or whose records it has to send yet. */
export class BasinEntry {
  readonly name: string
  readonly #parts: SyncedParts
  readonly #now: () => number
  readonly #onChange: (entry: BasinEntry) => Promise<void>
  readonly #handles = new Map<RecordFormat, SyncedStream<RecordFormat>>()
  readonly #ignoreChanges: () => void
  #usedAt = 0
  #visitedAt = 0
  #mayConnect = false
  /** How many records of the outbox were not on the server when it was looked at last. */
  #records: number | undefined

  /**
   * `now` returns the time, later each time. Calls back after each change of what waits, of the state of the
   * mirror, and of the handles; the promise resolves when that has ended the stream, if it has.
   */
  constructor(
    name: string,
    parts: SyncedParts,
    now: () => number,
    onChange: (entry: BasinEntry) => Promise<void>,
  ) {
    this.name = name
    this.#parts = parts
    this.#now = now
    this.#onChange = onChange
    const ignoreOutbox = parts.outbox.log.subscribe(() => this.#onOutbox())
    const states = [parts.mirror.state$, parts.outbox.state$].map((state$) =>
      (state$ as Observable<unknown>).subscribe(() => void this.#onChange(this)),
    )
    this.#ignoreChanges = () => {
      ignoreOutbox()
      for (const state of states) state.unsubscribe()
    }
  }

  get state(): MirrorState {
    return this.#parts.mirror.state
  }

  /** Whether the stream is still needed: the app has it open, or it has records to send. */
  get isNeeded(): boolean {
    return this.#handles.size > 0 || !(this.#isFlushed || this.state.kind === 'stopped')
  }

  /** Resolves when it is known whether the stream has records to send. Never rejects. */
  get loaded(): Promise<void> {
    return this.#parts.outbox.log.loaded().catch(() => {})
  }

  /** What other tabs need to know. */
  get open(): OpenStream {
    const visitedAt = this.#isDone ? Number.POSITIVE_INFINITY : this.#visitedAt
    return { name: this.name, usedAt: this.#usedAt, visitedAt }
  }

  /** Whether a connection has nothing to fetch or to send, or has failed. */
  get #isDone(): boolean {
    const { kind } = this.state
    const hasFailed = kind === 'offline' || this.#parts.outbox.state.kind === 'offline'
    return hasFailed || (kind === 'live' && this.#isFlushed)
  }

  get #isFlushed(): boolean {
    const { outbox } = this.#parts
    // One that cannot be read will not be either while it is kept open.
    if (outbox.state.kind === 'stopped' || outbox.log.end !== undefined) return true
    return outbox.log.device !== undefined && outbox.isFlushed
  }

  /** Returns the handle in a format. */
  handle(as: RecordFormat): SyncedStream<RecordFormat> {
    const known = this.#handles.get(as)
    if (known !== undefined) return known
    const close = async () => {
      if (this.#handles.get(as) !== handle) return
      this.#handles.delete(as)
      await this.#onChange(this)
    }
    const handle = new SyncedStream<RecordFormat>({ ...this.#parts, close }, as)
    this.#handles.set(as, handle)
    return handle
  }

  /** Notes that the app uses the stream. */
  use(): void {
    this.#usedAt = this.#now()
    void this.#onChange(this)
  }

  /** Lets the mirror connect, or no longer. */
  permit(mayConnect: boolean): void {
    if (mayConnect === this.#mayConnect) return
    if (!mayConnect && this.#isDone) this.#visitedAt = this.#now()
    this.#mayConnect = mayConnect
    this.#parts.mirror.permit(mayConnect)
  }

  /** Connects as soon as that is possible. */
  retry(): void {
    this.#visitedAt = 0
    this.#parts.mirror.retry()
  }

  async close(): Promise<void> {
    this.#ignoreChanges()
    this.#handles.clear()
    await this.#parts.close()
  }

  #onOutbox(): void {
    const { log } = this.#parts.outbox
    if (log.device === undefined) return
    const before = this.#records
    this.#records = log.state.records
    // What waited before the stream was opened is no use of it.
    if (before !== undefined && this.#records > before) this.#usedAt = this.#now()
    void this.#onChange(this)
  }
}
