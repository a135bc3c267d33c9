import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import type { MirrorState } from '../../src/sync/mirror.ts'
import { decodeMessage, encodeMessage } from '../../src/sync/mirror.ts'
import type { Coordinator, Membership } from './coordinator.ts'
import { syncedParts } from './synced.ts'
import { type SyncedParts, SyncedStream } from './synced-stream.ts'

type Candidate = Parameters<Coordinator>[1]

const WAITING: MirrorState = { kind: 'waiting' }

type EntryOptions = Parameters<typeof syncedParts>[2] & { readonly coordinator: Coordinator }

interface EntryEvents {
  /** Called after each change of what waits; `isNews` if records were appended meanwhile. */
  readonly onPending: (isNews: boolean) => void
  /** Called after each change of the state of the mirror. */
  readonly onState: () => void
  /** Called when the app asks for a connection. */
  readonly onAsked: () => void
  /** Called when the app has closed all handles. */
  readonly onReleased: () => Promise<void>
}

/**
 * A stream of a synced basin that is open in this tab. Its mirror stands for election only while it may
 * connect; otherwise it shows the state of the one that does.
 */
export class BasinEntry {
  readonly #parts: SyncedParts
  readonly #coordinator: Coordinator
  readonly #events: EntryEvents
  readonly #handles = new Map<RecordFormat, SyncedStream<RecordFormat>>()
  readonly #ignoreOutbox: () => void
  #member: { readonly membership: Membership; readonly candidate: Candidate } | undefined
  #isPermitted = false
  /** Whether the mirror has reported a state since it may connect. */
  #hasReported = false
  /** The number of the last record that was seen to wait. */
  #last: number | undefined

  constructor(remote: Stream, local: Stream, options: EntryOptions, events: EntryEvents) {
    this.#coordinator = options.coordinator
    this.#events = events
    const coordinator: Coordinator = (name, candidate) => this.#join(name, candidate)
    this.#parts = syncedParts(remote, local, { ...options, coordinator })
    const { mirror, outbox } = this.#parts
    this.#ignoreOutbox = outbox.subscribe(() => this.#onOutbox())
    let isFirst = true
    mirror.state$.subscribe(() => {
      this.#hasReported = true
      if (!isFirst) events.onState()
    })
    isFirst = false
  }

  get state(): MirrorState {
    return this.#parts.mirror.state
  }

  /** Whether the app has opened the stream. */
  get isOpen(): boolean {
    return this.#handles.size > 0
  }

  /** Whether everything is sent that may be sent. */
  get isFlushed(): boolean {
    const { outbox } = this.#parts
    if (outbox.state.kind === 'stopped') return true
    return outbox.device !== undefined && outbox.isFlushed
  }

  /** Whether a connection has nothing to fetch or to send at the moment. */
  get isDone(): boolean {
    const { state } = this
    if (state.kind === 'stopped') return true
    const isMissing = state.kind === 'offline' && isStreamMissing(state.error)
    return this.#hasReported && this.isFlushed && (isMissing || state.kind === 'live')
  }

  /** Returns the handle in a format. */
  handle(as: RecordFormat): SyncedStream<RecordFormat> {
    const known = this.#handles.get(as)
    if (known !== undefined) return known
    const close = async () => {
      if (this.#handles.get(as) !== handle) return
      this.#handles.delete(as)
      if (!this.isOpen) await this.#events.onReleased()
    }
    const handle = new SyncedStream<RecordFormat>({ ...this.#parts, close }, as)
    this.#handles.set(as, handle)
    return handle
  }

  /** Lets the mirror connect, or no longer. */
  permit(isPermitted: boolean): void {
    this.#isPermitted = isPermitted
    this.#hasReported = false
    this.#member?.membership.stand(isPermitted)
    if (isPermitted) return
    this.#member?.membership.post(encodeMessage({ kind: 'state', state: WAITING }))
    this.#showWaiting()
  }

  retry(): void {
    this.#parts.mirror.retry()
  }

  async close(): Promise<void> {
    this.#ignoreOutbox()
    this.#handles.clear()
    await this.#parts.close()
  }

  #join(name: string, candidate: Candidate): Membership {
    const membership = this.#coordinator(name, candidate, this.#isPermitted)
    const member = { membership, candidate }
    this.#member = member
    this.#showWaiting()
    return {
      stand: () => {},
      post: (message) => {
        membership.post(message)
        const kind = decodeMessage(message)?.kind
        if (kind === 'retry' || kind === 'replaced') this.#events.onAsked()
      },
      leave: () => {
        if (this.#member === member) this.#member = undefined
        membership.leave()
      },
    }
  }

  #showWaiting(): void {
    const member = this.#member
    // Later than what the election says.
    queueMicrotask(() => {
      if (this.#member !== member || this.#isPermitted) return
      member?.candidate.onMessage(encodeMessage({ kind: 'state', state: WAITING }))
    })
  }

  #onOutbox(): void {
    const { outbox } = this.#parts
    if (outbox.device === undefined) return
    const before = this.#last
    this.#last = Math.max(before ?? -1, [...outbox.log.state.entries.keys()].at(-1) ?? -1)
    // What waited before the stream was opened is not new.
    this.#events.onPending(before !== undefined && this.#last > before)
  }
}
