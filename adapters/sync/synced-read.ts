import type { StreamChange } from '../../src/sync/changes.ts'
import type { SyncedRecord } from '../../src/sync/synced-record.ts'

/** A change of a synced stream. */
export interface SyncedChange<Content> extends StreamChange<SyncedRecord<Content>, SyncedRecord<Content>> {
  /** Records below this sequence number were trimmed; undefined if the change trims nothing. */
  readonly trimmedTo: number | undefined
}

/**
 * A read of a synced stream, made by `synced.read()`. It is cold: each iteration is a read of its own.
 * Leaving the loop and the signal end it.
 *
 * ```ts
 * for await (const record of chat.read()) console.log(record.body)
 * const everything = await chat.read().toArray()
 * ```
 */
export class SyncedRead<Item> implements AsyncIterable<Item> {
  readonly #iterate: () => AsyncGenerator<Item, void, undefined>

  /** @internal */
  constructor(iterate: () => AsyncGenerator<Item, void, undefined>) {
    this.#iterate = iterate
  }

  /** Iterates over the records. */
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    return this.#iterate()
  }

  /** Resolves to all records, which are held in memory. */
  async toArray(): Promise<Item[]> {
    const items: Item[] = []
    for await (const item of this) items.push(item)
    return items
  }
}
