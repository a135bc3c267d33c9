import { idFrom, secureRandom } from '../../../src/runtime/ids.ts'
import type { CatalogChange } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { choresOf } from './chores.ts'
import { CommitDraft, type DraftedDocument, type DraftedLog, nameOf } from './commit-draft.ts'
import type { Connection } from './connection.ts'
import { type DocumentName, documentKey } from './documents.ts'
import { deleteTailRows, putLogRow } from './log-write.ts'
import { COMMIT_COUNTER, type CommitCounter, type StoreName } from './schema.ts'
import { readLog } from './tail-rows.ts'
import { type Durability, type Transaction, write } from './transactions.ts'

const NO_COMMIT: CommitCounter = { version: 0, commitId: '' }

/** Changes documents and logs atomically. */
export function commit(
  connection: Connection,
  durability: Durability,
  changes: readonly CatalogChange[],
): Promise<void> {
  const commitId = idFrom(secureRandom)
  const stores: StoreName[] = ['documents', 'counters']
  if (changes.some((change) => 'logId' in change)) stores.push('logs', 'appends', 'chores')
  /** The counter that the previous attempt built on. If the connection was lost, it may have succeeded. */
  let attempted: CommitCounter | undefined
  return connection.run((db) =>
    write(db, stores, durability, async (transaction) => {
      const [counter = NO_COMMIT, documents, logs] = await Promise.all([
        transaction.objectStore('counters').get(COMMIT_COUNTER),
        documentsOf(transaction, changes),
        logsOf(transaction, changes),
      ])
      if (attempted !== undefined && counter.commitId !== attempted.commitId) {
        if (counter.commitId === commitId) return
        throw outcomeUnknown()
      }
      const draft = new CommitDraft(documents, logs, counter.version)
      for (const change of changes) draft.apply(change)
      if (!changes.some(({ kind }) => kind !== 'check')) return
      attempted = counter
      const next: CommitCounter = { version: draft.version, commitId }
      transaction.objectStore('counters').put(next, COMMIT_COUNTER)
      for (const document of documents) if (document.isChanged) putDocument(transaction, document)
      for (const log of logs) if (log.isChanged) putDraftedLog(transaction, log)
    }),
  )
}

function outcomeUnknown(): StorageFailure {
  return new StorageFailure('io', 'lost the connection during a commit', {
    nothingWritten: false,
  })
}

function documentsOf(
  transaction: Transaction,
  changes: readonly CatalogChange[],
): Promise<DraftedDocument[]> {
  const names = new Map<string, DocumentName>()
  for (const change of changes) if ('collection' in change) names.set(nameOf(change), change)
  const store = transaction.objectStore('documents')
  return Promise.all(
    [...names.values()].map(async ({ collection, key }) => {
      const current = await store.get(documentKey({ collection, key }))
      return { collection, key, current, isChanged: false }
    }),
  )
}

function logsOf(transaction: Transaction, changes: readonly CatalogChange[]): Promise<DraftedLog[]> {
  const logIds = new Set(changes.flatMap((change) => ('logId' in change ? [change.logId] : [])))
  return Promise.all(
    [...logIds].map(async (logId) => {
      const [before, deleted] = await Promise.all([
        readLog(transaction, logId),
        transaction.objectStore('chores').get(['deleted', 0, logId]),
      ])
      return { logId, before, current: before, hasRemains: deleted !== undefined, isChanged: false }
    }),
  )
}

function putDocument(transaction: Transaction, { current, ...name }: DraftedDocument): void {
  const store = transaction.objectStore('documents')
  const key = documentKey(name)
  if (current === undefined) store.delete(key)
  else store.put(current, key)
}

function putDraftedLog(transaction: Transaction, { logId, current, before }: DraftedLog): void {
  if (before !== undefined) deleteTailRows(transaction, logId, before.row)
  if (current !== undefined) {
    putLogRow(transaction, logId, current.row, current.tailRows)
    return
  }
  transaction.objectStore('logs').delete(logId)
  if (before === undefined) return
  const chores = transaction.objectStore('chores')
  for (const chore of choresOf(logId, before.row)) chores.delete(chore)
  chores.put(1, ['deleted', 0, logId])
}
