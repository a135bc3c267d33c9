import type { PendingSource } from '../../adapters/sync/change-reader.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { entriesFound } from '../../src/sync/outbox.ts'
import { emptyOutbox, type OutboxEntry, type OutboxState } from '../../src/sync/outbox-log.ts'

/** The nonce of every entry. */
export const NONCE = 'nonce'

/** An outbox that a test fills and empties. */
export class PendingEntries implements PendingSource {
  device: string | undefined = 'device'
  loaded: Promise<void> = Promise.resolve()
  entries: OutboxState = {
    ...emptyOutbox(),
    progress: { device: 'device', producer: '', batch: -1, mode: 'tail', position: 0, doubtTo: -1 },
  }
  readonly #listeners = new Set<() => void>()

  subscribe(onChange: () => void): () => void {
    this.#listeners.add(onChange)
    return () => this.#listeners.delete(onChange)
  }

  /** The number of views that listen. */
  get listeners(): number {
    return this.#listeners.size
  }

  async catchUp(): Promise<void> {}

  async found(records: readonly SequencedRecord[]): Promise<void> {
    for (const [number, confirmation] of entriesFound(this.entries, records))
      this.#update(number, { confirmation, isFound: true })
  }

  change(changes: Partial<OutboxState>): void {
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

  #without(number: number): OutboxState['entries'] {
    return new Map([...this.entries.entries].filter(([other]) => other !== number))
  }

  #update(number: number, change: Partial<OutboxEntry>): void {
    const entry = { ...this.entries.entries.get(number), ...change } as OutboxEntry
    const entries = [...this.#without(number), [number, entry] as const].sort(([a], [b]) => a - b)
    this.change({ entries: new Map(entries) })
  }
}
