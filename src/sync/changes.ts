/** A record that is durable on this device and not yet known to be on the server. */
export interface NumberedItem<Item> {
  /** The number of the record in the outbox of this device. Numbers increase. */
  readonly number: number
  /** The record. Its sequence number is not known yet. */
  readonly item: Item
}

/**
 * A change of a stream as a view, a fold or a component sees it: records that were confirmed since the change
 * before, and all records that are pending now.
 *
 * ```ts
 * const from = 0
 * for await (const change of todo.changes(from, { signal: AbortSignal.timeout(1000) })) {
 *   const { isReset, start, confirmed, position, pending, isCaughtUp } = change
 *   if (isReset) console.log('begin again at', start)
 *   for (const record of confirmed) console.log(record.body)
 *   for (const { number, item } of pending) console.log('not sent yet:', number, item.body)
 *   if (isCaughtUp) console.log('up to', position)
 * }
 * ```
 */
export interface StreamChange<Confirmed, Pending> {
  /** Whether the local copy was replaced, which makes all records of earlier changes void. */
  readonly isReset?: boolean | undefined
  /**
   * The first sequence number that the change covers, command records included. It is greater than the
   * position of the change before if records in between were trimmed. Undefined if the change covers no new
   * sequence numbers.
   */
  readonly start?: number | undefined
  /** Confirmed records that follow those of the change before, in the order of the server. */
  readonly confirmed: readonly Confirmed[]
  /** The sequence number after the last confirmed record that was passed on. */
  readonly position: number
  /** All pending records in the order of their numbers. None of them is among the confirmed ones. */
  readonly pending: readonly NumberedItem<Pending>[]
  /** Whether every record that is stored on this device has been passed on. */
  readonly isCaughtUp: boolean
}

/**
 * A source of changes: a synced stream, or one that an app makes for a fold.
 *
 * ```ts
 * // The records of two streams, one after the other.
 * const both: ChangeSource<TextRecord, never> = {
 *   async *changes(from, { signal }) {
 *     const other = basin.stream('archive')
 *     const records = [...(await other.read({}, { signal }).toArray()), ...(await stream.read().toArray())]
 *     yield { confirmed: records.slice(from), position: records.length, pending: [], isCaughtUp: true }
 *   },
 * }
 * const count = fold(both, { version: 1, initial: 0, reduce: (sum) => sum + 1 })
 * ```
 */
export interface ChangeSource<Confirmed, Pending = Confirmed> {
  /**
   * Iterates over changes from a sequence number on, until the signal aborts. A change is passed on when the
   * consumer asks for the next one; changes meanwhile are combined.
   */
  changes(
    from: number,
    options: { readonly signal: AbortSignal },
  ): AsyncIterable<StreamChange<Confirmed, Pending>>
}
