import type { PendingEntry, PendingSource } from '../../adapters/sync/pending-source.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import { markOf } from '../../src/sync/overlay.ts'

/** The nonce of every entry. */
export const NONCE = 'nonce'

/** An outbox that a test fills and empties. */
export class PendingEntries implements PendingSource {
  device: string | undefined = 'device'
  loaded: Promise<void> = Promise.resolve()
  content: PendingSource['content'] = { waiting: [], examined: 0, known: 0, discarded: new Set() }
  readonly #listeners = new Set<() => void>()

  subscribe(onChange: () => void): () => void {
    this.#listeners.add(onChange)
    return () => this.#listeners.delete(onChange)
  }

  /** The number of views that listen. */
  get listeners(): number {
    return this.#listeners.size
  }

  change(content: Partial<PendingSource['content']>): void {
    this.content = { ...this.content, ...content }
    for (const listener of [...this.#listeners]) listener()
  }

  add(number: number, body: string, error?: HeadwaterError): void {
    const waiting = this.content.waiting.filter((entry) => entry.number !== number)
    const mark = markOf({ number, nonce: NONCE })
    const entry = { number, batch: number, mark, item: entryOf(number, body, error) }
    this.change({
      waiting: [...waiting, entry].sort((a, b) => a.number - b.number),
      known: Math.max(this.content.known, number + 1),
    })
  }

  /** Removes a record that was confirmed below a sequence number. */
  confirm(number: number, examined: number): void {
    this.change({ waiting: this.content.waiting.filter((entry) => entry.number !== number), examined })
  }

  discard(number: number): void {
    const discarded = new Set([...this.content.discarded, number])
    this.change({ waiting: this.content.waiting.filter((entry) => entry.number !== number), discarded })
  }
}

function entryOf(number: number, body: string, error: HeadwaterError | undefined): PendingEntry {
  const record = { seqNum: number, timestamp: 1_000 + number, headers: [], body: utf8(body) }
  return { record: { ...record, hasOwnTimestamp: false, nonce: NONCE }, error }
}
