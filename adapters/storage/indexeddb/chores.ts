import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import { pageExpiry } from './page.ts'
import type { Chore, ChoreKind, ChoreTimes, LogRow } from './schema.ts'

/** A log row whose chore times changed, and the changes to `chores` that go with it. */
export interface RescheduledLog {
  readonly row: LogRow
  readonly choresAdded: readonly Chore[]
  readonly choresRemoved: readonly Chore[]
}

/** The state that determines the time of a `trimmed` chore. */
type TrimState = Pick<LogRow, 'head' | 'freedBelow'>

/**
 * The chore times after blocks were added to a log row or its tail rows. Keeps times that are too early,
 * because an occasional chore that finds nothing costs less than an update with every append.
 */
export function choreTimesAfter(
  times: Partial<ChoreTimes>,
  blocks: readonly BlockSummary[],
  log: TrimState,
): ChoreTimes {
  return {
    expiryChoreAt: earlier(times.expiryChoreAt, pageExpiry(blocks)),
    trimChoreAt: earlier(times.trimChoreAt, firstDueTrim(log)),
  }
}

/** The chore times of a log row with these blocks and no tail rows. */
export function exactChoreTimes(blocks: readonly BlockSummary[], log: TrimState): ChoreTimes {
  return { expiryChoreAt: pageExpiry(blocks), trimChoreAt: firstDueTrim(log) }
}

export function isSameSchedule(a: ChoreTimes, b: ChoreTimes): boolean {
  return a.expiryChoreAt === b.expiryChoreAt && a.trimChoreAt === b.trimChoreAt
}

/** Changes the chore times of a log row from those of `before`. */
export function reschedule(logId: string, before: LogRow, next: LogRow, times: ChoreTimes): RescheduledLog {
  const { expiryChoreAt: _, trimChoreAt: __, ...rest } = next
  const { expiryChoreAt, trimChoreAt } = times
  const row: LogRow = {
    ...rest,
    ...(expiryChoreAt !== undefined && { expiryChoreAt }),
    ...(trimChoreAt !== undefined && { trimChoreAt }),
  }
  const old = choresOf(logId, before)
  const wanted = choresOf(logId, row)
  return { row, choresAdded: difference(wanted, old), choresRemoved: difference(old, wanted) }
}

export function choresOf(logId: string, { expiryChoreAt, trimChoreAt }: LogRow): Chore[] {
  const chores: Chore[] = []
  if (expiryChoreAt !== undefined) chores.push(['expired', expiryChoreAt, logId])
  if (trimChoreAt !== undefined) chores.push(['trimmed', trimChoreAt, logId])
  return chores
}

/** The keys of the chores of a kind that are due by then. */
export function choresUntil(kind: ChoreKind, time: number): IDBKeyRange {
  return IDBKeyRange.bound([kind], [kind, time, []])
}

export function putChores(
  transaction: IDBTransaction,
  { choresAdded, choresRemoved }: Pick<RescheduledLog, 'choresAdded' | 'choresRemoved'>,
): void {
  const store = transaction.objectStore('chores')
  for (const chore of choresRemoved) store.delete(chore)
  for (const chore of choresAdded) store.put(1, chore)
}

/** The time of the first trim that may have left blocks to reclaim. */
function firstDueTrim({ head, freedBelow }: TrimState): number | undefined {
  return head.trims.find(({ point }) => point > freedBelow)?.at
}

function difference(chores: readonly Chore[], others: readonly Chore[]): Chore[] {
  return chores.filter(([kind, at]) => !others.some((other) => other[0] === kind && other[1] === at))
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a
}
