import { reclaimTimes } from '../../../src/core/retention.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { RecentMap } from '../../../src/storage/ordered-list.ts'
import { type DueIndex, decodeLog, dueKey, encodeLog, type KeyValueLog, logKey } from './layout.ts'
import type { KeyValueBatch, OrderedKeyValueStore } from './store.ts'

/** The entry of a log as it is stored. */
export interface LogEntry {
  /** Undefined if there is no entry. */
  readonly value: Uint8Array | undefined
  /** Undefined if there is no entry, or the log is deleted. */
  readonly log: KeyValueLog | undefined
}

/** Each takes a few hundred bytes. */
const CACHED_ENTRIES_MAX = 1_000

/** The entries of logs. Those that this session wrote most recently are cached. */
export class LogEntries {
  /** Whether no other session writes, so that a cached entry is the stored one. */
  readonly isExclusive: boolean
  readonly #store: OrderedKeyValueStore
  /** Entries that writes have added; a read could add what a write has just replaced. */
  readonly #cached = new RecentMap<string, LogEntry>(CACHED_ENTRIES_MAX)

  constructor(store: OrderedKeyValueStore, isExclusive: boolean) {
    this.#store = store
    this.isExclusive = isExclusive
  }

  /** Returns the entry that this session wrote last, if it is known. */
  cached(logId: string): LogEntry | undefined {
    return this.#cached.get(logId)
  }

  /** The stored entry. */
  async current(logId: string): Promise<LogEntry> {
    return (this.isExclusive ? this.cached(logId) : undefined) ?? this.load(logId)
  }

  async load(logId: string): Promise<LogEntry> {
    const value = await this.#store.get(logKey(logId))
    return { value, log: value && decodeLog(value) }
  }

  written(logId: string, entry: LogEntry): void {
    if (entry.log === undefined) this.#cached.delete(logId)
    else this.#cached.set(logId, entry)
  }

  /** Forgets what was cached: others have written, or the outcome of a write is unknown. */
  forget(): void {
    this.#cached.clear()
  }
}

/** A batch in the making, and the entries of logs that it writes. */
export class Draft implements KeyValueBatch {
  readonly expected: [Uint8Array, Uint8Array | undefined][] = []
  readonly puts: [Uint8Array, Uint8Array][] = []
  readonly deletes: Uint8Array[] = []
  readonly entries = new Map<string, LogEntry>()
  readonly frees: boolean

  constructor(frees: boolean) {
    this.frees = frees
  }

  /** Replaces the entry of a log, expecting the one that was read, and moves it in the indexes. */
  putLog(logId: string, before: LogEntry, log: KeyValueLog | undefined): void {
    const value = encodeLog(log)
    this.expected.push([logKey(logId), before.value])
    this.puts.push([logKey(logId), value])
    this.entries.set(logId, { value, log })
    const [old, next] = [before.log && dueTimes(before.log), log ? dueTimes(log) : DELETED]
    for (const index of ['t', 'x'] as const) {
      const [from, to] = [old?.[index] ?? null, next[index]]
      if (from === to) continue
      if (from !== null) this.deletes.push(dueKey(index, from, logId))
      if (to !== null) this.puts.push([dueKey(index, to, logId), new Uint8Array(0)])
    }
  }

  /** Removes the entry of a deleted log that has no blocks left. */
  removeLog(logId: string, { value }: LogEntry): void {
    this.expected.push([logKey(logId), value])
    this.deletes.push(logKey(logId), dueKey('t', DELETED.t, logId))
  }
}

/** The times at which a log is due in each index; null for never. */
type DueTimes = Readonly<Record<DueIndex, number | null>>

/** Deleted logs are always due. */
const DELETED = { t: 0, x: null }

function dueTimes({ head, first }: KeyValueLog): DueTimes {
  const { trimmedAt, expiresAt } = first ? reclaimTimes(first, head) : { trimmedAt: null, expiresAt: null }
  return { t: trimmedAt, x: expiresAt }
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
  const { expected, puts, deletes, frees } = batch
  const isEmpty = puts.length + deletes.length === 0
  // What was read from a shared store was read at several moments.
  if (isEmpty && (logs.isExclusive || expected.length === 0)) return true
  try {
    return await store.transact({ expected, puts, deletes, frees })
  } catch (error) {
    logs.forget()
    throw error
  }
}
