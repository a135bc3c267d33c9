import type { NumberedItem } from './changes.ts'

/** A record that waits in the outbox. */
interface WaitingRecord<Item> extends NumberedItem<Item> {
  /** The number of the first record of its append, which the server stores as a whole. */
  readonly batch: number
  /** Tells the record from those of other writers that claim its number: see {@link markOf}. */
  readonly mark: string
}

/** Returns the part of an origin that identifies a record of the device. */
export function markOf({ number, nonce }: { readonly number: number; readonly nonce: string }): string {
  return `${number}/${nonce}`
}

/**
 * The records of an outbox as one view shows them. The outbox and the view read the confirmed records at
 * their own pace, so a record that left the outbox stays pending in a view that has not reached it yet.
 */
export interface Overlay<Item> {
  /** The records in the outbox, by their numbers. */
  readonly waiting: readonly WaitingRecord<Item>[]
  /** Records that left the outbox as confirmed, which the view has not reached. */
  readonly unreached: readonly UnreachedRecord<Item>[]
  /** The marks of records that the view has reached, as far as the outbox may still name them. */
  readonly reached: ReadonlySet<string>
}

interface UnreachedRecord<Item> {
  readonly record: WaitingRecord<Item>
  /** Its sequence number is less. */
  readonly below: number
}

/** The outbox after a change. */
export interface OutboxContent<Item> {
  /** Its records in the order of their numbers. */
  readonly waiting: readonly WaitingRecord<Item>[]
  /** All confirmed records below this sequence number were compared with the outbox. */
  readonly examined: number
  /** All entries of the outbox below this number are known. */
  readonly known: number
  /** Numbers that left the outbox without being confirmed. */
  readonly discarded: ReadonlySet<number>
}

/** The overlay of a view that has reached nothing, on an empty outbox. */
export const EMPTY_OVERLAY: Overlay<never> = { waiting: [], unreached: [], reached: new Set() }

/** How far a view may be ahead of the outbox: what one append of another tab has. */
const AHEAD_MAX = 1_000

/** Returns the overlay after a change of the outbox. */
export function withOutbox<Item>(overlay: Overlay<Item>, content: OutboxContent<Item>): Overlay<Item> {
  const { waiting, examined, known, discarded } = content
  // Most often, records were added, and thousands wait.
  if (isContinued(overlay.waiting, waiting) && overlay.unreached.length + overlay.reached.size === 0)
    return { ...overlay, waiting }
  const marks = new Set(waiting.map(({ mark }) => mark))
  const left = overlay.waiting.filter(({ mark }) => !marks.has(mark) && !overlay.reached.has(mark))
  // An entry can be confirmed before this tab learns that it exists. Other writers may claim any number.
  const early = [...overlay.reached].filter((mark) => {
    const ahead = Number.parseInt(mark, 10) - known
    return ahead >= 0 && ahead < AHEAD_MAX
  })
  const reached = [...early.slice(-AHEAD_MAX), ...[...overlay.reached].filter((mark) => marks.has(mark))]
  const unreached = [...overlay.unreached, ...left.map((record) => ({ record, below: examined }))]
  return {
    waiting,
    unreached: unreached.filter(({ record }) => !discarded.has(record.number)),
    reached: withEarlierOfBatch(new Set(reached), waiting),
  }
}

/** Returns the overlay of a view that has reached records of this device with these marks. */
export function withReached<Item>(overlay: Overlay<Item>, marks: readonly string[]): Overlay<Item> {
  if (marks.length === 0) return overlay
  const reached = new Set(overlay.reached)
  for (const mark of marks) reached.add(mark)
  const left = overlay.unreached.map(({ record }) => record)
  for (const records of [left, overlay.waiting]) withEarlierOfBatch(reached, records)
  return {
    waiting: overlay.waiting,
    unreached: overlay.unreached.filter(({ record }) => !reached.has(record.mark)),
    reached,
  }
}

/** Returns the overlay without the records that left the outbox below the position of the view. */
export function withPosition<Item>(overlay: Overlay<Item>, position: number): Overlay<Item> {
  if (!overlay.unreached.some(({ below }) => below <= position)) return overlay
  return { ...overlay, unreached: overlay.unreached.filter(({ below }) => below > position) }
}

/** Returns the records that the view shows as pending, in the order of their numbers. */
export function pendingOf<Item>({
  waiting,
  unreached,
  reached,
}: Overlay<Item>): readonly NumberedItem<Item>[] {
  const shown = reached.size === 0 ? waiting : waiting.filter(({ mark }) => !reached.has(mark))
  if (unreached.length === 0) return shown
  return [...unreached.map(({ record }) => record), ...shown].sort((a, b) => a.number - b.number)
}

/** Adds the records that come before a reached one in its batch, which may have been trimmed. */
function withEarlierOfBatch(reached: Set<string>, records: readonly WaitingRecord<unknown>[]): Set<string> {
  let batch: number | undefined
  for (let index = reached.size === 0 ? -1 : records.length - 1; index >= 0; index--) {
    const record = records[index]!
    if (reached.has(record.mark)) batch = record.batch
    else if (record.batch === batch) reached.add(record.mark)
  }
  return reached
}

/** Whether all records that waited before still wait. They come first then. */
function isContinued(before: Overlay<unknown>['waiting'], waiting: Overlay<unknown>['waiting']): boolean {
  // Numbers increase and never return, so the last one moves if any is removed.
  return before.length === 0 || waiting[before.length - 1]?.number === before.at(-1)!.number
}
