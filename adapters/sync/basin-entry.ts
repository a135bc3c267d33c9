import type { Stream } from '../../src/api/stream.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import type { MirrorState } from '../../src/sync/mirror-state.ts'
import { type Mirror, mirror } from './mirror.ts'
import type { Outbox } from './outbox.ts'
import { type SyncedStreamOptions, syncedParts } from './synced.ts'
import { SyncedStream } from './synced-stream.ts'

export type EntryOptions = Omit<SyncedStreamOptions, 'as' | 'signal'>

interface EntryEvents {
  /** Called after each change of what waits; `isNews` if records were appended meanwhile. */
  readonly onPending: (isNews: boolean) => void
  /** Receives each state of the mirror. */
  readonly onState: (state: MirrorState) => void
  /** Called when the app has closed all handles. */
  readonly onReleased: () => Promise<void>
}

/** A stream of a synced basin that is open in this tab. */
export class BasinEntry {
  readonly mirror: Mirror
  /** Undefined for a stream that is only copied. */
  readonly outbox: Outbox | undefined
  readonly #close: () => Promise<void>
  readonly #events: EntryEvents
  readonly #handles = new Map<RecordFormat, SyncedStream<RecordFormat>>()
  #ignore = () => {}
  /** The number of the last record that was seen to wait. */
  #last: number | undefined

  constructor(remote: Stream, local: Stream, isCopy: boolean, options: EntryOptions, events: EntryEvents) {
    this.#events = events
    if (isCopy) {
      const { from, random, coordinator, wakeUps } = options
      this.mirror = mirror(remote, local, { from, random, coordinator, wakeUps })
      this.#close = () => this.mirror.close()
    } else {
      const { mirror: copy, outbox, close } = syncedParts(remote, local, options)
      this.mirror = copy
      this.outbox = outbox
      this.#close = close
      this.#ignore = outbox.subscribe(() => this.#onOutbox(outbox))
    }
    this.mirror.state$.subscribe(events.onState)
  }

  /** Whether the app has opened the stream. */
  get isOpen(): boolean {
    return this.#handles.size > 0
  }

  /** Whether everything is sent that may be sent. */
  get isFlushed(): boolean {
    const { outbox } = this
    if (outbox === undefined || outbox.state.kind === 'stopped') return true
    return outbox.device !== undefined && outbox.isFlushed
  }

  /** Returns the handle in a format. The entry must have an outbox. */
  handle(as: RecordFormat): SyncedStream<RecordFormat> {
    const known = this.#handles.get(as)
    if (known !== undefined) return known
    const close = async () => {
      if (this.#handles.get(as) !== handle) return
      this.#handles.delete(as)
      if (!this.isOpen) await this.#events.onReleased()
    }
    const handle = new SyncedStream<RecordFormat>({ mirror: this.mirror, outbox: this.outbox!, close }, as)
    this.#handles.set(as, handle)
    return handle
  }

  async close(): Promise<void> {
    this.#ignore()
    this.#handles.clear()
    await this.#close()
  }

  #onOutbox(outbox: Outbox): void {
    if (outbox.device === undefined) return
    const before = this.#last
    this.#last = Math.max(before ?? -1, outbox.content.waiting.at(-1)?.number ?? -1)
    // What waited before the stream was opened is not new.
    this.#events.onPending(before !== undefined && this.#last > before)
  }
}
