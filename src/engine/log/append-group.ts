import type { AppendBatch } from '../../model/append-input.ts'
import type { AppendAck } from '../../model/info.ts'
import type { SequencedRecord } from '../../model/record.ts'

/**
 * Encodes a block of an append once its records have sequence numbers and timestamps. `part` is the index of
 * the block.
 */
export type BlockEncoder = (records: readonly SequencedRecord[], part: number) => Uint8Array

/** Receives the outcome of one append. Callbacks, because every promise on the way would cost a turn. */
export interface AppendListener {
  /** Called when the append is durable, or is known to have been made before. */
  acked(ack: AppendAck): void
  failed(error: unknown): void
}

/** Accepts appends in order, once they are encrypted. */
export interface AppendSink {
  enqueue(batch: AppendBatch, listener: AppendListener, group?: AppendGroup, encode?: BlockEncoder): void
}

/**
 * Appends of which none is made after one that failed: those of an append session. A refusal may be
 * reconsidered while the head that it rests on is uncertain; until then no later append of the group is made
 * either.
 */
export class AppendGroup {
  #failed = false
  #failure: unknown
  #refused: object | undefined

  /** Whether an append failed permanently. */
  get failed(): boolean {
    return this.#failed
  }

  /** Why the first of them failed. */
  get failure(): unknown {
    return this.#failure
  }

  /** Whether the next append may be made. */
  get isOpen(): boolean {
    return !this.#failed && this.#refused === undefined
  }

  fail(error: unknown): void {
    if (!this.#failed) this.#failure = error
    this.#failed = true
  }

  refuse(append: object): void {
    this.#refused ??= append
  }

  reconsider(append: object): void {
    if (this.#refused === append) this.#refused = undefined
  }
}
