import { compareUtf8, utf8 } from '../model/bytes.ts'
import { secureRandom } from '../runtime/random.ts'
import type { CatalogChange, Collection, Head, ListRange } from './contract.ts'
import { StorageConflict } from './errors.ts'
import { emptyHead } from './heads.ts'

type DocumentPut = Extract<CatalogChange, { readonly kind: 'put' }>

/** A change with its value as JSON text, for storages that use it after their caller may modify it. */
export type SerializedChange =
  | Exclude<CatalogChange, DocumentPut>
  | (Omit<DocumentPut, 'value'> & { readonly text: string })

/** Serializes the values of a commit. */
export function serializeChanges(changes: readonly CatalogChange[]): readonly SerializedChange[] {
  return changes.map((change) => {
    if (change.kind !== 'put') return change
    const { value, ...put } = change
    return { ...put, text: JSON.stringify(value) }
  })
}

/** The documents that the expectations of a commit refer to. An asynchronous storage loads them first. */
export interface DocumentVersions {
  /** Returns the version of a document, or undefined if there is none. */
  versionOf(collection: Collection, key: string): number | undefined
  /** Returns a version that no document has had. */
  nextVersion(): number
}

/** The logs that the expectations of a commit refer to. */
export interface LogHeads {
  /** Returns the head of a log, or undefined if there is none. Not modified. */
  headOf(logId: string): Head | undefined
}

/** The outcome of a commit for one document. */
export interface DocumentUpdate {
  /** Collection of the document. */
  readonly collection: Collection
  /** Key of the document. */
  readonly key: string
  /** The new value as JSON text, and its version; undefined if the document is deleted. */
  readonly content: { readonly text: string; readonly version: number } | undefined
}

/** The outcome of a commit for one log. */
export interface LogUpdate {
  /** Id of the log. */
  readonly logId: string
  /** The new head; undefined if the log is deleted. */
  readonly head: Head | undefined
  /** Whether the log is created. Otherwise the head has another epoch, or the log is deleted. */
  readonly isNew: boolean
}

/** The writes that a commit consists of. A storage makes all of them or none. */
export interface CommitPlan {
  /** The updates, at most one for each document. */
  readonly documents: readonly DocumentUpdate[]
  /** The updates, at most one for each log. */
  readonly logs: readonly LogUpdate[]
}

/**
 * Interprets the changes of a commit, in order: each sees the outcome of those before it. Throws
 * {@link StorageConflict} if an expectation does not hold. Changes nothing itself.
 */
export function planCommit(
  changes: readonly (CatalogChange | SerializedChange)[],
  versions: DocumentVersions,
  heads: LogHeads,
): CommitPlan {
  const documents = new Map<string, DocumentUpdate>()
  const logs = new Map<string, LogUpdate>()
  for (const change of changes) {
    if ('logId' in change) planLog(logs, change, heads)
    else planDocument(documents, change, versions)
  }
  return { documents: [...documents.values()], logs: [...logs.values()] }
}

type LogChange = Extract<SerializedChange, { readonly logId: string }>

function planDocument(
  documents: Map<string, DocumentUpdate>,
  change: Exclude<CatalogChange | SerializedChange, LogChange>,
  versions: DocumentVersions,
): void {
  const { kind, collection, key, expect } = change
  // Unique, because names of collections do not contain U+0000.
  const name = `${collection}\0${key}`
  const update = documents.get(name)
  const version = update ? update.content?.version : versions.versionOf(collection, key)
  if (expect !== undefined && expect !== (version ?? null)) {
    throw new StorageConflict(
      `document ${JSON.stringify(key)} in ${collection} does not have the expected version`,
    )
  }
  if (kind === 'put') {
    const text = 'text' in change ? change.text : JSON.stringify(change.value)
    const content = { text, version: versions.nextVersion() }
    documents.set(name, { collection, key, content })
  } else if (kind === 'delete' && version !== undefined) {
    documents.set(name, { collection, key, content: undefined })
  }
}

function planLog(logs: Map<string, LogUpdate>, change: LogChange, heads: LogHeads): void {
  const { kind, logId } = change
  const update = logs.get(logId)
  const current = update ? update.head : heads.headOf(logId)
  let isNew = update?.isNew === true
  let head: Head | undefined
  let problem: string | false | undefined
  if (kind === 'create-log') {
    problem = (update || current) && 'already exists'
    isNew = true
    head = emptyHead(change.epoch, change.createdAt, change.start)
  } else if (kind === 'set-epoch') {
    problem = !current && 'does not exist'
    const { epoch, extensions = current?.extensions } = change
    head = current && { ...current, epoch, ...(extensions && { extensions }) }
  } else if (current === undefined) {
    return
  } else {
    const { expectSeqNum = current.tail.seqNum } = change
    problem = expectSeqNum !== current.tail.seqNum && 'does not have the expected tail'
  }
  if (problem) throw new StorageConflict(`log ${logId} ${problem}`)
  if (isNew && !head) logs.delete(logId)
  else logs.set(logId, { logId, head, isNew })
}

/** The keys of a list as bytes of UTF-8, whose order is that of `StorageSession.list`. */
export interface KeyBounds {
  /** The lower bound. */
  readonly from: Uint8Array
  /** Whether `from` itself is excluded. */
  readonly isFromExcluded: boolean
  /** The upper bound, exclusive. */
  readonly to: Uint8Array
}

/** Returns the bounds of the keys that a list selects, or undefined if there can be none. */
export function keyBounds({ prefix, after, limit }: ListRange): KeyBounds | undefined {
  const isAfter = compareUtf8(after, prefix) >= 0
  if (limit <= 0 || (isAfter && !after.startsWith(prefix))) return undefined
  return {
    from: utf8(isAfter ? after : prefix),
    isFromExcluded: isAfter,
    // UTF-8 never contains the byte 0xff.
    to: Uint8Array.of(...utf8(prefix), 0xff),
  }
}

/**
 * Returns 53 random bits as the version of a document, for storages in which a counter would make unrelated
 * commits conflict. Repeats one of a million earlier versions with a probability of 1 in 9 billion.
 */
export function randomVersion(): number {
  return Math.floor(secureRandom() * 2 ** 21) * 2 ** 32 + Math.floor(secureRandom() * 2 ** 32)
}
