import { utf8 } from '../../../src/model/bytes.ts'
import { idFrom, secureRandom } from '../../../src/runtime/ids.ts'
import {
  type DocumentUpdate,
  type DocumentVersions,
  type LogHeads,
  type LogUpdate,
  planCommit,
} from '../../../src/storage/commit-plan.ts'
import type { CatalogChange, Collection, Document, Head, ListRange } from '../../../src/storage/contract.ts'
import { keyBounds } from '../../../src/storage/document-keys.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { choresOf } from './chores.ts'
import { type DatabaseConnection, type TransactionDurability, write } from './connection.ts'
import { deleteTailRows, putLogRow } from './log-write.ts'
import { NO_BLOCKS } from './page.ts'
import {
  COMMIT_COUNTER,
  type CommitCounter,
  type DocumentKey,
  type DocumentRow,
  type StoreName,
  type WriteTransaction,
} from './schema.ts'
import { readTailLog, type StoredLog } from './tail-rows.ts'

export async function getDocument(
  connection: DatabaseConnection,
  collection: Collection,
  key: string,
): Promise<Document | undefined> {
  const row = await connection.read(['documents'], (transaction) =>
    transaction.objectStore('documents').get(documentKey({ collection, key })),
  )
  return row === undefined ? undefined : documentOf(row)
}

export async function listDocuments(
  connection: DatabaseConnection,
  collection: Collection,
  query: ListRange,
): Promise<Document[]> {
  const bounds = keyBounds(query)
  if (bounds === undefined) return []
  const from = bounds.from.length === 0 ? [collection] : [collection, new Uint8Array(bounds.from)]
  const range = IDBKeyRange.bound(from, [collection, bounds.to], bounds.isFromExcluded, true)
  const rows = await connection.read(['documents'], (transaction) =>
    transaction.objectStore('documents').getAll(range, query.limit),
  )
  return rows.map(documentOf)
}

interface DocumentName {
  readonly collection: Collection
  readonly key: string
}

function documentKey({ collection, key }: DocumentName): DocumentKey {
  return [collection, new Uint8Array(utf8(key))]
}

function documentOf({ key, text, version }: DocumentRow): Document {
  return { key, value: JSON.parse(text), version }
}

const NO_COMMIT: CommitCounter = { version: 0, commitId: '' }

/** Changes documents and logs atomically. */
export function commitTransaction(
  connection: DatabaseConnection,
  durability: TransactionDurability,
  changes: readonly CatalogChange[],
): Promise<void> {
  const commitId = idFrom(secureRandom)
  const stores: StoreName[] = ['documents', 'counters']
  if (changes.some((change) => 'logId' in change)) stores.push('logs', 'appends', 'chores')
  /** The counter that the previous attempt built on. If the connection was lost, it may have succeeded. */
  let attempted: CommitCounter | undefined
  return connection.run((db) =>
    write(db, stores, durability, async (transaction, raw) => {
      const state = new CommitState()
      const [counter = NO_COMMIT] = await Promise.all([
        transaction.objectStore('counters').get(COMMIT_COUNTER),
        ...changes.map((change) => state.load(transaction, change)),
      ])
      if (attempted !== undefined && counter.commitId !== attempted.commitId) {
        if (counter.commitId === commitId) return
        throw outcomeUnknown()
      }
      state.version = counter.version
      const { documents, logs } = planCommit(changes, state, state)
      if (documents.length + logs.length === 0) return
      attempted = counter
      const next: CommitCounter = { version: state.version, commitId }
      raw.objectStore('counters').put(next, COMMIT_COUNTER)
      for (const update of documents) putDocument(raw, update)
      for (const update of logs) putLog(raw, update, state.logs.get(update.logId))
    }),
  )
}

function outcomeUnknown(): StorageFailure {
  return new StorageFailure('io', 'lost the connection during a commit', {
    nothingWritten: false,
  })
}

/** The documents and logs that the changes of a commit name. */
class CommitState implements DocumentVersions, LogHeads {
  /** The greatest version ever given to a document. */
  version = 0
  readonly logs = new Map<string, StoredLog | undefined>()
  readonly #versions = new Map<string, number | undefined>()
  /** Ids of deleted logs whose pages may remain. */
  readonly #deleted = new Set<string>()

  async load(transaction: WriteTransaction, change: CatalogChange): Promise<void> {
    if ('logId' in change) {
      const { logId } = change
      const [log, deleted] = await Promise.all([
        readTailLog(transaction, logId),
        transaction.objectStore('chores').get(['deleted', 0, logId]),
      ])
      this.logs.set(logId, log)
      if (deleted !== undefined) this.#deleted.add(logId)
    } else {
      const document = await transaction.objectStore('documents').get(documentKey(change))
      this.#versions.set(nameOf(change.collection, change.key), document?.version)
    }
  }

  versionOf(collection: Collection, key: string): number | undefined {
    return this.#versions.get(nameOf(collection, key))
  }

  nextVersion(): number {
    return ++this.version
  }

  headOf(logId: string): Head | undefined {
    const log = this.logs.get(logId)
    return log && (log.tailRows.at(-1) ?? log.row).head
  }

  hasRemains(logId: string): boolean {
    return this.#deleted.has(logId)
  }
}

function putDocument(transaction: IDBTransaction, { content, ...name }: DocumentUpdate): void {
  const store = transaction.objectStore('documents')
  const key = documentKey(name)
  if (content === undefined) store.delete(key)
  else store.put({ key: name.key, ...content }, key)
}

function putLog(
  transaction: IDBTransaction,
  { logId, head, isNew }: LogUpdate,
  before: StoredLog | undefined,
): void {
  if (before !== undefined) deleteTailRows(transaction, logId, before.row)
  if (head !== undefined) {
    const { row, tailRows } = isNew ? newLog(head) : withEpoch(before!, head)
    putLogRow(transaction, logId, row, tailRows)
    return
  }
  transaction.objectStore('logs').delete(logId)
  const chores = transaction.objectStore('chores')
  for (const chore of choresOf(logId, before!.row)) chores.delete(chore)
  chores.put(1, ['deleted', 0, logId])
}

/** Unique, because names of collections do not contain U+0000. */
function nameOf(collection: Collection, key: string): string {
  return `${collection}\0${key}`
}

function newLog(head: Head): StoredLog {
  const row = {
    revision: firstRevision(),
    head,
    meteredBytes: 0,
    tail: NO_BLOCKS,
    freedBelow: head.trimPoint,
  }
  return { row, tailRows: [] }
}

/**
 * Random, because the id may be that of a deleted log, which other sessions may still have cached with its
 * revision.
 */
function firstRevision(): number {
  return secureRandom() * 2 ** 52
}

/** Returns the log with a new epoch. Does not decode tail rows, so it works on damaged ones. */
function withEpoch(
  { row, tailRows }: StoredLog,
  { epoch, extensions }: Pick<Head, 'epoch' | 'extensions'>,
): StoredLog {
  const revision = row.revision + 1
  const update = <Value extends { readonly head: Head }>(value: Value) => ({
    ...value,
    revision,
    head: { ...value.head, epoch, ...(extensions !== undefined && { extensions }) },
  })
  return { row: update(row), tailRows: tailRows.map(update) }
}
