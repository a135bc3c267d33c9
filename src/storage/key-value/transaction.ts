import { StorageFailure } from '../errors.ts'
import { dueKey, type KeyValueLog, logKey } from './layout.ts'
import { type LogEntries, type LogEntry, logEntryOf } from './log-entries.ts'
import type { KeyValueBatch, OrderedKeyValueStore } from './store.ts'

/** A batch in the making, and the entries of logs that it writes. */
export class Draft implements KeyValueBatch {
  readonly expected: [Uint8Array, Uint8Array | undefined][] = []
  readonly puts: [Uint8Array, Uint8Array][] = []
  readonly deletes: Uint8Array[] = []
  readonly entries = new Map<string, LogEntry>()

  /** Replaces the entry of a log, expecting the one that was read, and moves it in the index of due logs. */
  putLog(logId: string, before: LogEntry, log: KeyValueLog | undefined): void {
    const entry = logEntryOf(log)
    this.expected.push([logKey(logId), before.value])
    this.puts.push([logKey(logId), entry.value!])
    this.entries.set(logId, entry)
    const isDeleted = log === undefined
    this.#reschedule(logId, before.log && dueTimeOf(before.log), isDeleted ? DELETED : dueTimeOf(log))
  }

  /** Removes the entry of a deleted log that has no blocks left. */
  removeLog(logId: string, { value }: LogEntry): void {
    this.expected.push([logKey(logId), value])
    this.deletes.push(logKey(logId), dueKey(DELETED, logId))
  }

  #reschedule(logId: string, before: number | undefined, after: number | undefined): void {
    if (before === after) return
    if (before !== undefined) this.deletes.push(dueKey(before, logId))
    if (after !== undefined) this.puts.push([dueKey(after, logId), new Uint8Array(0)])
  }
}

/** Deleted logs are always due. */
const DELETED = 0

/** The time of the first trim that may have left blocks to free. */
function dueTimeOf({ head, freedBelow }: KeyValueLog): number | undefined {
  return head.trims.find(({ point }) => point > freedBelow)?.at
}

/** Each failed attempt means that another writer succeeded, so more are needed only if a store is broken. */
const ATTEMPTS_MAX = 1_000

/**
 * Applies what `draft` returns. Calls it again, with nothing cached, if other writers have changed what it
 * rests on. Must not run twice at a time.
 */
export async function transact(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  draft: () => Promise<Draft>,
): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const batch = await draft()
    if (await isApplied(store, logs, batch)) {
      for (const [logId, entry] of batch.entries) logs.written(logId, entry)
      return
    }
    logs.forget()
  }
  const message = `other writers changed the same keys in each of ${ATTEMPTS_MAX} attempts`
  throw new StorageFailure('io', message, { nothingWritten: true })
}

async function isApplied(store: OrderedKeyValueStore, logs: LogEntries, batch: Draft): Promise<boolean> {
  const { expected, puts, deletes } = batch
  const isEmpty = puts.length + deletes.length === 0
  // What was read from a shared store was read at several moments.
  if (isEmpty && (logs.isExclusive || expected.length === 0)) return true
  try {
    return await store.transact({ expected, puts, deletes })
  } catch (error) {
    logs.forget()
    throw error
  }
}
