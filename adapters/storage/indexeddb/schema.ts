import type { DBSchema, IDBPDatabase, IDBPTransaction, StoreNames } from 'idb'
import type { Collection } from '../../../src/storage/contract.ts'
import type { AppendRow, RowMark } from './append-row.ts'
import type { LogRow } from './log-row.ts'
import type { PageRow } from './page-row.ts'

/** Counts the {@link UPGRADES}. */
export const SCHEMA_VERSION = 3

/** The object stores. Persisted: what is here changes only by another upgrade. */
export interface Schema extends DBSchema {
  documents: { key: DocumentKey; value: DocumentRow }
  counters: { key: typeof COMMIT_COUNTER; value: CommitCounter }
  /** By the id of the log. */
  logs: { key: string; value: LogRow }
  /** Small appends behind the rows of their logs. */
  appends: { key: AppendKey; value: AppendRow | RowMark }
  /** The blocks of all logs, but for the latest small ones, which are in the rows of their logs or behind them. */
  pages: {
    key: PageKey
    value: PageRow
    indexes: { 'by-expiry': number; 'by-timestamp': [logId: string, lastTimestamp: number] }
  }
  /** The data of large blocks, in order. */
  parts: { key: PartKey; value: Uint8Array }
  /** Nothing but space. */
  reserve: { key: typeof RESERVE; value: Uint8Array }
  /** What there is to reclaim, and from when on, other than expired pages. The values mean nothing. */
  chores: { key: Chore; value: 1 }
}

/** The collection and the UTF-8 bytes of the key, so that the order is that of the bytes. */
export type DocumentKey = [collection: Collection, key: Uint8Array<ArrayBuffer>]

export interface DocumentRow {
  readonly key: string
  /** JSON. */
  readonly text: string
  readonly version: number
}

export const COMMIT_COUNTER = 'commit'

/** The last commit that was made. */
export interface CommitCounter {
  /** The greatest version that a document was ever given. */
  readonly version: number
  /** Tells a commit whose outcome got lost whether it was made. */
  readonly commitId: string
}

export const RESERVE = 'bytes'

/** The sequence number is that behind the page's last record. */
export type PageKey = [logId: string, endSeqNum: number]
type PartKey = [...PageKey, part: number]

/** Where it begins, -1 for a mark, and the revision of the log's row that it is behind. */
export type AppendKey = [logId: string, firstSeqNum: number, revision: number]

/**
 * `deleted`: the pages of a log that is gone (time 0). `expired`: blocks in the log's row or behind it expire at this time or later. `trimmed`: blocks of
 * the log were trimmed at this time.
 */
export type ChoreKind = 'deleted' | 'expired' | 'trimmed'
export type Chore = [kind: ChoreKind, at: number, logId: string]

export type StoreName = StoreNames<Schema>
export type Database = IDBPDatabase<Schema>
export type ReadTransaction = IDBPTransaction<Schema, StoreName[], 'readonly'>
export type WriteTransaction = IDBPTransaction<Schema, StoreName[], 'readwrite'>
type UpgradeTransaction = IDBPTransaction<Schema, StoreName[], 'versionchange'>

/** Each makes the next version of the schema out of the one before, keeping everything; the first out of nothing. */
const UPGRADES: readonly ((db: Database, transaction: UpgradeTransaction) => void)[] = [
  (db) => {
    db.createObjectStore('documents')
    db.createObjectStore('counters')
    db.createObjectStore('logs')
    db.createObjectStore('pages').createIndex('by-expiry', 'expiresAt')
    db.createObjectStore('parts')
    db.createObjectStore('chores')
  },
  // A read from a timestamp had to look at the pages in front of it; a full database could not be trimmed.
  (db, transaction) => {
    transaction.objectStore('pages').createIndex('by-timestamp', ['logId', 'lastTimestamp'])
    db.createObjectStore('reserve')
  },
  // An append had to wait for the log's row, and to write it anew.
  (db) => {
    db.createObjectStore('appends')
  },
]

export function upgrade(db: Database, fromVersion: number, transaction: UpgradeTransaction): void {
  for (const step of UPGRADES.slice(fromVersion)) step(db, transaction)
}
