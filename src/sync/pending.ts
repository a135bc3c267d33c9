import type { HeadwaterError } from '../model/errors.ts'
import type { NumberedItem } from './changes.ts'
import type { OutboxEntry, OutboxRecord, OutboxState } from './outbox-log.ts'

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
