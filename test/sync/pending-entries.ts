import { NEVER } from 'rxjs'
import type { Mirror } from '../../adapters/sync/mirror.ts'
import type { Outbox } from '../../adapters/sync/outbox.ts'
import { textContent } from '../../adapters/sync/synced-changes.ts'
import { SyncedReader } from '../../adapters/sync/synced-reader.ts'
import type { Stream } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { entriesFound } from '../../src/sync/outbox.ts'
import { initialProgress, type OutboxEntry, OutboxState } from '../../src/sync/outbox-log.ts'
import type { TextContent } from '../../src/sync/synced-record.ts'

/** The nonce of every entry. */
export const NONCE = 'nonce'

/** A synced stream whose outbox a test fills and empties. */
export class TextReader extends SyncedReader<TextContent> {
  constructor(local: Stream, outbox: PendingEntries) {
    const mirror = { local, state$: NEVER } as unknown as Mirror
    super({ mirror, outbox: outbox as unknown as Outbox }, textContent)
  }
}

type ViewedState = Pick<OutboxState, 'entries' | 'progress' | 'discarded' | 'copiedTo'>

/** An outbox that a test fills and empties. */
export class PendingEntries {
  device: string | undefined = 'device'
  loaded = async (): Promise<void> => {}
  entries: ViewedState = { ...new OutboxState(), progress: initialProgress('device', '') }
  readonly closing = new AbortController().signal
  readonly #listeners = new Set<() => void>()

  subscribe(onChange: () => void): () => void {
    this.#listeners.add(onChange)
    return () => this.#listeners.delete(onChange)
  }

  /** The number of views that listen. */
  get listeners(): number {
    return this.#listeners.size
  }

  /** The part of its log that views read. */
  get log() {
    return this
  }

  get state(): ViewedState {
    return this.entries
  }

  async catchUp(): Promise<void> {}

  async found(records: readonly SequencedRecord[]): Promise<void> {
    for (const [number, confirmation] of entriesFound(this.entries, records))
      this.#update(number, { confirmation, isFound: true })
  }

  change(changes: Partial<ViewedState>): void {
    this.entries = { ...this.entries, ...changes }
    for (const listener of [...this.#listeners]) listener()
  }

  add(number: number, body: string, error?: HeadwaterError): void {
    const record = { seqNum: number, timestamp: 1_000 + number, headers: [], body: utf8(body) }
    const records = [{ ...record, hasOwnTimestamp: false, nonce: NONCE }]
    this.#update(number, { number, records, meteredBytes: 0, error, confirmation: undefined, isFound: false })
  }

  /** Removes a record, which the copy has below a sequence number. */
  confirm(number: number, copiedTo: number): void {
    this.change({ entries: this.#without(number), copiedTo })
  }

  discard(number: number): void {
    const discarded = new Set([...this.entries.discarded, number])
    this.change({ entries: this.#without(number), discarded })
  }

  #without(number: number): ViewedState['entries'] {
    return new Map([...this.entries.entries].filter(([other]) => other !== number))
  }

  #update(number: number, change: Partial<OutboxEntry>): void {
    const entry = { ...this.entries.entries.get(number), ...change } as OutboxEntry
    const entries = [...this.#without(number), [number, entry] as const].sort(([a], [b]) => a - b)
    this.change({ entries: new Map(entries) })
  }
}
