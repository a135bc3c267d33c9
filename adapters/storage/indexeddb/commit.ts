import { idFrom, secureRandom } from '../../../src/runtime/ids.ts'
import {
  type CatalogChange,
  type Collection,
  emptyHead,
  type Head,
  type LogStart,
} from '../../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { choresOf } from './chores.ts'
import type { Connection } from './connection.ts'
import { type DocumentName, documentKey } from './documents.ts'
import { deleteTailRows, putLogRow } from './log-write.ts'
import { EMPTY_PAGE } from './page.ts'
import {
  COMMIT_COUNTER,
  type CommitCounter,
  type DocumentRow,
  type LogRow,
  type StoreName,
  type WriteTransaction,
} from './schema.ts'
import { readLog, type StoredLog } from './tail-rows.ts'
import { type Durability, write } from './transactions.ts'

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
    write(db, stores, durability, async (transaction, raw) => {
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
      raw.objectStore('counters').put(next, COMMIT_COUNTER)
      for (const document of documents) if (document.isChanged) putDocument(raw, document)
      for (const log of logs) if (log.isChanged) putDraftedLog(raw, log)
    }),
  )
}

function outcomeUnknown(): StorageFailure {
  return new StorageFailure('io', 'lost the connection during a commit', {
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
      const current = await store.get(documentKey({ collection, key }))
      return { collection, key, current, isChanged: false }
    }),
  )
}

function logsOf(transaction: WriteTransaction, changes: readonly CatalogChange[]): Promise<DraftedLog[]> {
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

function putDocument(transaction: IDBTransaction, { current, ...name }: DraftedDocument): void {
  const store = transaction.objectStore('documents')
  const key = documentKey(name)
  if (current === undefined) store.delete(key)
  else store.put(current, key)
}

function putDraftedLog(transaction: IDBTransaction, { logId, current, before }: DraftedLog): void {
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

/** The value at the current point of the draft, and whether the commit changes it. */
interface Drafted<Value> {
  current: Value | undefined
  isChanged: boolean
}

interface DraftedDocument extends Drafted<DocumentRow> {
  readonly collection: Collection
  readonly key: string
}

interface DraftedLog extends Drafted<StoredLog> {
  readonly logId: string
  /** Before the commit. */
  readonly before: StoredLog | undefined
  /** Pages of a deleted log with the same id may remain. */
  hasRemains: boolean
}

/** Applies the changes of one commit in order. Throws `StorageConflict` if an expectation does not hold. */
class CommitDraft {
  readonly #documents: ReadonlyMap<string, DraftedDocument>
  readonly #logs: ReadonlyMap<string, DraftedLog>
  #version: number

  /** `version` is the greatest version ever given to a document. */
  constructor(documents: readonly DraftedDocument[], logs: readonly DraftedLog[], version: number) {
    this.#documents = new Map(documents.map((document) => [nameOf(document), document]))
    this.#logs = new Map(logs.map((log) => [log.logId, log]))
    this.#version = version
  }

  get version(): number {
    return this.#version
  }

  apply(change: CatalogChange): void {
    switch (change.kind) {
      case 'put': {
        const document = this.#document(change, change.expect)
        const row = { key: change.key, text: JSON.stringify(change.value), version: ++this.#version }
        Object.assign(document, { current: row, isChanged: true })
        return
      }
      case 'delete':
        Object.assign(this.#document(change, change.expect), { current: undefined, isChanged: true })
        return
      case 'check':
        this.#document(change, change.expect)
        return
      case 'create-log': {
        const log = this.#logs.get(change.logId)!
        if (log.current !== undefined || log.hasRemains)
          throw new StorageConflict(`log ${log.logId} already exists`)
        const row = newLogRow(change.epoch, change.createdAt, change.start)
        Object.assign(log, { current: { row, tailRows: [] }, isChanged: true })
        return
      }
      case 'set-epoch': {
        const log = this.#logs.get(change.logId)!
        if (log.current === undefined) throw new StorageConflict(`log ${log.logId} does not exist`)
        Object.assign(log, { current: withEpoch(log.current, change.epoch), isChanged: true })
        return
      }
      case 'delete-log': {
        const log = this.#logs.get(change.logId)!
        if (log.current === undefined) return
        if (
          change.expectSeqNum !== undefined &&
          change.expectSeqNum !== (log.current.tailRows.at(-1) ?? log.current.row).head.tail.seqNum
        ) {
          throw new StorageConflict(`log ${log.logId} does not have the expected tail`)
        }
        Object.assign(log, { current: undefined, hasRemains: true, isChanged: true })
        return
      }
    }
  }

  /** Checks the expected version of a document. */
  #document(name: DocumentName, expect: number | null | undefined): DraftedDocument {
    const document = this.#documents.get(nameOf(name))!
    if (expect !== undefined && (document.current?.version ?? null) !== expect) {
      const { collection, key } = name
      throw new StorageConflict(
        `document ${JSON.stringify(key)} in ${collection} does not have the expected version`,
      )
    }
    return document
  }
}

/** Unique, because names of collections do not contain U+0000. */
function nameOf({ collection, key }: DocumentName): string {
  return `${collection}\0${key}`
}

function newLogRow(epoch: number, createdAt: number, start: LogStart | undefined): LogRow {
  const head = emptyHead(epoch, createdAt, start)
  return { revision: firstRevision(), head, meteredBytes: 0, tail: EMPTY_PAGE, freedBelow: head.trimPoint }
}

/**
 * Random, because the id may be that of a deleted log, which other sessions may still have cached with its
 * revision.
 */
function firstRevision(): number {
  return secureRandom() * 2 ** 52
}

/** Does not decode tail rows, so it works on damaged ones. */
function withEpoch({ row, tailRows }: StoredLog, epoch: number): StoredLog {
  const revision = row.revision + 1
  const update = <Value extends { readonly head: Head }>(value: Value) => ({
    ...value,
    revision,
    head: { ...value.head, epoch },
  })
  return { row: update(row), tailRows: tailRows.map(update) }
}
