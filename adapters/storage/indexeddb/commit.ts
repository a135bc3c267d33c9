import { idFrom, secureRandom } from '../../../src/engine/ids.ts'
import type { CatalogChange } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { CommitDraft, type DraftedDocument, type DraftedLog, nameOf } from './commit-draft.ts'
import type { Connection } from './connection.ts'
import { type DocumentName, documentKey } from './document-key.ts'
import { choresOf } from './log-write.ts'
import { deleteBehind, putRow } from './put-log.ts'
import { COMMIT_COUNTER, type CommitCounter, type StoreName, type WriteTransaction } from './schema.ts'
import { readLog } from './stored-log.ts'
import { type Durability, writeIn } from './transactions.ts'

const NO_COMMIT: CommitCounter = { version: 0, commitId: '' }

/** Changes documents and logs, all or nothing. */
export function commit(
  connection: Connection,
  durability: Durability,
  changes: readonly CatalogChange[],
): Promise<void> {
  const commitId = idFrom(secureRandom)
  const stores: StoreName[] = ['documents', 'counters']
  if (changes.some((change) => 'logId' in change)) stores.push('logs', 'appends', 'chores')
  /** The counter that the attempt before rested on: a connection that is lost does not tell whether it was made. */
  let tried: CommitCounter | undefined
  return connection.run((db) =>
    writeIn(db, stores, durability, async (transaction, raw) => {
      const [counter = NO_COMMIT, documents, logs] = await Promise.all([
        transaction.objectStore('counters').get(COMMIT_COUNTER),
        documentsOf(transaction, changes),
        logsOf(transaction, changes),
      ])
      if (tried !== undefined && counter.commitId !== tried.commitId) {
        if (counter.commitId === commitId) return
        throw outcomeUnknown()
      }
      const draft = new CommitDraft(documents, logs, counter.version)
      for (const change of changes) draft.apply(change)
      if (!changes.some(({ kind }) => kind !== 'check')) return
      tried = counter
      const next: CommitCounter = { version: draft.version, commitId }
      raw.objectStore('counters').put(next, COMMIT_COUNTER)
      for (const document of documents) if (document.isChanged) putDocument(raw, document)
      for (const log of logs) if (log.isChanged) putLogRow(raw, log)
    }),
  )
}

function outcomeUnknown(): StorageFailure {
  return new StorageFailure('io', 'the connection was lost while a commit was made', {
    nothingWritten: false,
  })
}

function documentsOf(
  transaction: WriteTransaction,
  changes: readonly CatalogChange[],
): Promise<DraftedDocument[]> {
  const names = new Map<string, DocumentName>()
  for (const change of changes) if ('collection' in change) names.set(nameOf(change), change)
  const store = transaction.objectStore('documents')
  return Promise.all(
    [...names.values()].map(async ({ collection, key }) => {
      const now = await store.get(documentKey({ collection, key }))
      return { collection, key, now, isChanged: false }
    }),
  )
}

function logsOf(transaction: WriteTransaction, changes: readonly CatalogChange[]): Promise<DraftedLog[]> {
  const logIds = new Set(changes.flatMap((change) => ('logId' in change ? [change.logId] : [])))
  return Promise.all(
    [...logIds].map(async (logId) => {
      const [before, leftOver] = await Promise.all([
        readLog(transaction, logId),
        transaction.objectStore('chores').get(['deleted', 0, logId]),
      ])
      return { logId, before, now: before, isLeftOver: leftOver !== undefined, isChanged: false }
    }),
  )
}

function putDocument(transaction: IDBTransaction, { now, ...name }: DraftedDocument): void {
  const store = transaction.objectStore('documents')
  const key = documentKey(name)
  if (now === undefined) store.delete(key)
  else store.put(now, key)
}

function putLogRow(transaction: IDBTransaction, { logId, now, before }: DraftedLog): void {
  if (before !== undefined) deleteBehind(transaction, logId, before.row)
  if (now !== undefined) {
    putRow(transaction, logId, now.row, now.appends)
    return
  }
  transaction.objectStore('logs').delete(logId)
  if (before === undefined) return
  const chores = transaction.objectStore('chores')
  for (const chore of choresOf(logId, before.row)) chores.delete(chore)
  chores.put(1, ['deleted', 0, logId])
}
