import { RecentMap } from '../recent-map.ts'
import { decodeLog, encodeLog, type KeyValueLog, logKey } from './layout.ts'
import type { OrderedKeyValueStore } from './store.ts'

/** The entry of a log as it is stored. */
export interface LogEntry {
  /** Undefined if there is no entry. */
  readonly value: Uint8Array | undefined
  /** Undefined if there is no entry, or the log is deleted. */
  readonly log: KeyValueLog | undefined
}

export function logEntryOf(log: KeyValueLog | undefined): LogEntry {
  return { value: encodeLog(log), log }
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
