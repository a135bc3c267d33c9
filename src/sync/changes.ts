import type { HeadwaterError } from '../model/errors.ts'
import type { OutboxEntry, OutboxRecord, OutboxState } from './outbox-log.ts'

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

/** A record of an outbox, as views show it. */
export interface PendingEntry {
  readonly record: OutboxRecord
  /** The number of the first record of its append. */
  readonly batch: number
  /** The reason why the record was parked; undefined while it waits. */
  readonly error: HeadwaterError | undefined
}

type Pending = NumberedItem<PendingEntry>

/** The items of an entry by its records, so that views can tell which have changed. */
const itemsByRecords = new WeakMap<OutboxEntry['records'], readonly Pending[]>()

/**
 * Returns the records that a view shows as pending once it has read a copy up to a position: those of the
 * outbox that are not known to be below it. A record leaves the outbox once the copy has it; if the view has
 * shown it (`before`), it stays until the view has reached it too: until it was among the records that were
 * `read`, or the view is beyond what the copy had then.
 */
export function pendingAt(
  { entries, discarded, copiedTo }: Pick<OutboxState, 'entries' | 'discarded' | 'copiedTo'>,
  position: number,
  before: readonly Pending[],
  read: ReadonlyMap<number, string>,
): readonly Pending[] {
  const waiting: Pending[] = []
  for (const entry of entries.values()) {
    const { seqNum } = entry.isFound ? entry.confirmation!.start : { seqNum: Number.POSITIVE_INFINITY }
    itemsOf(entry).forEach((item, index) => {
      if (seqNum + index >= position) waiting.push(item)
    })
  }
  // Most often, records were added, and thousands wait. Numbers increase, so the last one moves if any has
  // left.
  if (before.length === 0 || waiting[before.length - 1] === before.at(-1)) return waiting
  const left = before.filter(({ number, item: { batch, record } }) => {
    const isGone = !entries.has(batch) && !discarded.has(number)
    return isGone && read.get(number) !== record.nonce && position < copiedTo
  })
  return left.length === 0 ? waiting : [...left, ...waiting].sort((a, b) => a.number - b.number)
}

function itemsOf({ number: batch, records, error }: OutboxEntry): readonly Pending[] {
  const known = itemsByRecords.get(records)
  if (known !== undefined && known[0]!.item.error === error) return known
  const items = records.map((record) => ({ number: record.seqNum, item: { record, batch, error } }))
  itemsByRecords.set(records, items)
  return items
}
