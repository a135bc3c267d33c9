import type { DBSchema, IDBPDatabase, IDBPTransaction, StoreNames } from 'idb'
import type { Collection, Head } from '../../../src/storage/contract.ts'

/** The number of {@link UPGRADES}. */
export const SCHEMA_VERSION = 4

/**
 * The object stores. Everything in this file is persisted: a change to a name, a key or a row needs another
 * upgrade.
 */
export interface Schema extends DBSchema {
  documents: { key: DocumentKey; value: DocumentRow }
  counters: { key: typeof COMMIT_COUNTER; value: CommitCounter }
  /** The logs by id. */
  logs: { key: string; value: LogRow }
  /** Tail rows and tail markers. */
  appends: { key: TailKey; value: TailRow | TailMarker }
  /** The blocks of all logs, except for the latest small ones, which are in log rows and tail rows. */
  pages: {
    key: PageKey
    value: PageRow
    indexes: { 'by-expiry': number; 'by-timestamp': [logId: string, lastTimestamp: number] }
  }
  /** The data of large blocks, in order. */
  parts: { key: PartKey; value: Uint8Array }
  /** Random bytes that occupy space; see `space.ts`. */
  reserve: { key: typeof RESERVE; value: Uint8Array }
  /** An index of what can be reclaimed and when, except for expired pages. The values carry no meaning. */
  chores: { key: Chore; value: 1 }
}

/** The collection and the UTF-8 bytes of the key, which makes the order of keys the order of their bytes. */
export type DocumentKey = [collection: Collection, key: Uint8Array<ArrayBuffer>]

export interface DocumentRow {
  readonly key: string
  /** JSON. */
  readonly text: string
  readonly version: number
}

export const COMMIT_COUNTER = 'commit'

/** The state after the latest commit. */
export interface CommitCounter {
  /** The greatest version ever given to a document. */
  readonly version: number
  /** Lets a commit whose outcome was lost find out whether it succeeded. */
  readonly commitId: string
}

/** The state of a log, except for its tail rows. */
export interface LogRow extends Partial<ChoreTimes> {
  /**
   * Changes whenever cached knowledge of the log becomes invalid. Never repeats, not even in another log that
   * reuses the id of a deleted one.
   */
  readonly revision: number
  /** The head before the tail rows. */
  readonly head: Head
  /** The bytes of all blocks of the log, except for those in tail rows. */
  readonly meteredBytes: number
  /** The latest blocks below `head`, while they are small. All pages precede them. */
  readonly tail: PackedBlocks
  /** All blocks that end at or below this sequence number were reclaimed after a trim. */
  readonly freedBelow: number
}

/**
 * The times at which a log is due in `chores` as `expired` and as `trimmed`; undefined for never. They may be
 * early, but never late.
 */
export interface ChoreTimes {
  readonly expiryChoreAt: number | undefined
  readonly trimChoreAt: number | undefined
}

/** The first sequence number, or -1 for a marker, and the revision of the log row that it extends. */
export type TailKey = [logId: string, firstSeqNum: number, revision: number]

/**
 * A group of small appends, stored beside the log row so that writing them takes a single `add`.
 *
 * The key contains the first sequence number, so of two writers that build on the same head only one
 * succeeds. A writer with a stale revision finds no marker, and readers ignore its rows.
 */
export interface TailRow extends PackedBlocks {
  /** The revision of the log row that it extends. */
  readonly revision: number
  /** The head after these appends. */
  readonly head: Head
  /**
   * Totals up to and including this row: tail rows, their size in a page, and the metered bytes of their
   * blocks.
   */
  readonly rows: number
  readonly bytes: number
  readonly meteredBytes: number
}

/** Exists while the log row has this revision. Tail rows of a revision without a marker do not count. */
export interface TailMarker {
  readonly revision: number
}

/**
 * Consecutive blocks of one log in two buffers, which browsers clone faster than objects, and store in less
 * space.
 */
export interface PackedBlocks {
  /**
   * Seven numbers per block: first and end sequence number, first and last timestamp, metered bytes, expiry
   * (infinity for never), and the offset at which its data ends.
   */
  readonly numbers: Float64Array
  /** The concatenated data of the blocks. */
  readonly data: Uint8Array
}

/** The sequence number after the last record of the page. */
export type PageKey = [logId: string, endSeqNum: number]
type PartKey = [...PageKey, part: number]

/**
 * Chromium stores values of 64 KiB and more in separate files, so rows stay below that. Small blocks share a
 * page. The data of a larger block is divided into parts, in a store without indexes, because many small
 * values are faster to write and read than one of a few hundred kilobytes. For even larger blocks a file is
 * faster, and deleting it frees its space at once, so they have a single part.
 *
 * Where possible, a block is split between records: each part is then a block itself, so a read copies
 * nothing and loads only the parts that it needs.
 */
export interface PageRow extends PackedBlocks {
  readonly logId: string
  readonly lastTimestamp: number
  /** The earliest expiry of the blocks; absent if none expires. */
  readonly expiresAt?: number | undefined
  /** The number of rows in `parts` that hold the data of the only block; 0 if the data is in this row. */
  readonly parts: number
  /**
   * The numbers of the blocks that the only block was split into, one per part; absent if parts are not
   * blocks.
   */
  readonly pieces?: Float64Array | undefined
}

export const RESERVE = 'bytes'

/**
 * `deleted`: pages of a deleted log remain (time 0). `expired`: blocks in the log row or in tail rows expire
 * at this time or later. `trimmed`: blocks of the log were trimmed at this time.
 */
export type ChoreKind = 'deleted' | 'expired' | 'trimmed'
export type Chore = [kind: ChoreKind, at: number, logId: string]

export type StoreName = StoreNames<Schema>
export type IndexedDatabase = IDBPDatabase<Schema>
export type ReadTransaction = IDBPTransaction<Schema, StoreName[], 'readonly'>
export type WriteTransaction = IDBPTransaction<Schema, StoreName[], 'readwrite'>
type UpgradeTransaction = IDBPTransaction<Schema, StoreName[], 'versionchange'>

/** Each upgrades the schema by one version and keeps all data; the first starts from an empty database. */
const UPGRADES: readonly ((db: IndexedDatabase, transaction: UpgradeTransaction) => void)[] = [
  (db) => {
    db.createObjectStore('documents')
    db.createObjectStore('counters')
    db.createObjectStore('logs')
    db.createObjectStore('pages').createIndex('by-expiry', 'expiresAt')
    db.createObjectStore('parts')
    db.createObjectStore('chores')
  },
  // Reading from a timestamp scanned all earlier pages, and a full database could not be trimmed.
  (db, transaction) => {
    transaction.objectStore('pages').createIndex('by-timestamp', ['logId', 'lastTimestamp'])
    db.createObjectStore('reserve')
  },
  // Each append read and rewrote the log row.
  (db) => {
    db.createObjectStore('appends')
  },
  // Versions of the library before would drop the write state of the heads.
  () => {},
]

export function upgrade(db: IndexedDatabase, fromVersion: number, transaction: UpgradeTransaction): void {
  for (const step of UPGRADES.slice(fromVersion)) step(db, transaction)
}
