import { secureRandom } from '../../../src/engine/ids.ts'
import type { CatalogChange, Collection, Head, LogStart } from '../../../src/storage/contract.ts'
import { emptyHead } from '../../../src/storage/empty-head.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import type { DocumentName } from './document-key.ts'
import type { LogRow } from './log-row.ts'
import { EMPTY_PAGE } from './page.ts'
import type { DocumentRow } from './schema.ts'
import type { StoredLog } from './stored-log.ts'

/** What there is of something, and whether it becomes something else. */
interface Drafted<Value> {
  now: Value | undefined
  isChanged: boolean
}

export interface DraftedDocument extends Drafted<DocumentRow> {
  readonly collection: Collection
  readonly key: string
}

export interface DraftedLog extends Drafted<StoredLog> {
  readonly logId: string
  /** Before the commit. */
  readonly before: StoredLog | undefined
  /** A log of that id was deleted, and its pages may still be there. */
  isLeftOver: boolean
}

/** The changes of one commit, applied one after another to what they are about. Throws `StorageConflict` when an expectation does not hold. */
export class CommitDraft {
  readonly #documents: ReadonlyMap<string, DraftedDocument>
  readonly #logs: ReadonlyMap<string, DraftedLog>
  #version: number

  /** `version` is the greatest that was ever given to a document. */
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
        Object.assign(document, { now: row, isChanged: true })
        return
      }
      case 'delete':
        Object.assign(this.#document(change, change.expect), { now: undefined, isChanged: true })
        return
      case 'check':
        this.#document(change, change.expect)
        return
      case 'create-log': {
        const log = this.#logs.get(change.logId)!
        if (log.now !== undefined || log.isLeftOver) throw new StorageConflict(`log ${log.logId} exists`)
        const row = newLogRow(change.epoch, change.createdAt, change.start)
        Object.assign(log, { now: { row, appends: [] }, isChanged: true })
        return
      }
      case 'set-epoch': {
        const log = this.#logs.get(change.logId)!
        if (log.now === undefined) throw new StorageConflict(`there is no log ${log.logId}`)
        Object.assign(log, { now: withEpoch(log.now, change.epoch), isChanged: true })
        return
      }
      case 'delete-log': {
        const log = this.#logs.get(change.logId)!
        if (log.now === undefined) return
        if (
          change.expectSeqNum !== undefined &&
          change.expectSeqNum !== (log.now.appends.at(-1) ?? log.now.row).head.tail.seqNum
        ) {
          throw new StorageConflict(`the tail of log ${log.logId} is not the expected one`)
        }
        Object.assign(log, { now: undefined, isLeftOver: true, isChanged: true })
        return
      }
    }
  }

  /** What there is now, which must be what is expected. */
  #document(name: DocumentName, expect: number | null | undefined): DraftedDocument {
    const document = this.#documents.get(nameOf(name))!
    if (expect !== undefined && (document.now?.version ?? null) !== expect) {
      const { collection, key } = name
      throw new StorageConflict(
        `the document ${JSON.stringify(key)} of ${collection} is not at the expected version`,
      )
    }
    return document
  }
}

/** Unique: no collection has U+0000 in its name. */
export function nameOf({ collection, key }: DocumentName): string {
  return `${collection}\0${key}`
}

function newLogRow(epoch: number, createdAt: number, start: LogStart | undefined): LogRow {
  const head = emptyHead(epoch, createdAt, start)
  return { revision: firstRevision(), head, meteredBytes: 0, tail: EMPTY_PAGE, freedBelow: head.trimPoint }
}

/** A log may have the id of one that was deleted, of whose revisions it must have none: somebody may still think that it is there. */
function firstRevision(): number {
  return secureRandom() * 2 ** 52
}

/** What is behind the row is not looked into: whatever is damaged there stays as it is. */
function withEpoch({ row, appends }: StoredLog, epoch: number): StoredLog {
  const revision = row.revision + 1
  const moved = <Value extends { readonly head: Head }>(value: Value) => ({
    ...value,
    revision,
    head: { ...value.head, epoch },
  })
  return { row: moved(row), appends: appends.map(moved) }
}
