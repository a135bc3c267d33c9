import type { HeadwaterError } from '../../src/model/errors.ts'
import type { OutboxRecord } from '../../src/sync/outbox-log.ts'
import type { OutboxContent } from '../../src/sync/overlay.ts'

/** A record of an outbox, in bytes. */
export interface PendingEntry {
  readonly record: OutboxRecord
  /** The reason why the record was parked; undefined while it waits. */
  readonly error: HeadwaterError | undefined
}

/** The pending records of a device. */
export interface PendingSource {
  /** The id of the device; undefined until the outbox is loaded. */
  readonly device: string | undefined
  /** Resolves when the outbox is loaded. Rejects if it ends before. */
  readonly loaded: Promise<void>
  /** Content after the last change. */
  readonly content: OutboxContent<PendingEntry>
  /** Aborts when the outbox is closed. */
  readonly closing?: AbortSignal | undefined
  /** Calls back after each change. The returned function ends that. */
  subscribe(onChange: () => void): () => void
}
