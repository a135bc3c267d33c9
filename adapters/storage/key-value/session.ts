import { concatBytes, lossyTextOf } from '../../../src/model/bytes.ts'
import { SerialQueue } from '../../../src/runtime/queues.ts'
import { appendedBytes } from '../../../src/storage/block-sizes.ts'
import {
  type DocumentVersions,
  keyBounds,
  planCommit,
  randomVersion,
  type SerializedChange,
  serializeChanges,
} from '../../../src/storage/commit-plan.ts'
import type {
  AppendRequest,
  CatalogChange,
  Collection,
  Document,
  Head,
  ListRange,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  StorageSession,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { GroupCommit } from '../../../src/storage/group-commit.ts'
import { SessionCalls } from '../../../src/storage/session-calls.ts'
import { appendGroup } from './append-group.ts'
import {
  catalogKey,
  collectionKey,
  decodeDocumentValue,
  EMPTY_LOG,
  encodeDocumentValue,
  parseJson,
} from './layout.ts'
import { readLogBlocks } from './log-reader.ts'
import { MERGED_BLOCKS, mergeBlocks } from './merge.ts'
import { reclaimBlocks } from './reclaim.ts'
import type { OrderedKeyValueStore } from './store.ts'
import { Draft, LogEntries, type LogEntry, transact } from './transaction.ts'

/** The most data of one batch, in bytes, unless a single append has more. */
const GROUP_BYTES_MAX = 4 * 1024 * 1024

/** One engine's access to a store. Writes run one after the other; appends that wait are one of them. */
export class KeyValueSession implements StorageSession {
  readonly #store: OrderedKeyValueStore
  readonly #logs: LogEntries
  readonly #calls = new SessionCalls()
  readonly #writes = new SerialQueue()
  readonly #appends: GroupCommit<AppendRequest>
  readonly #onClosed: (() => void) | undefined
  /** The unmerged blocks from which on a log is merged, where a merge is running or has failed. */
  readonly #mergedFrom = new Map<string, number>()
  #isFull = false

  constructor(store: OrderedKeyValueStore, isShared: boolean, onClosed?: () => void) {
    this.#store = store
    this.#logs = new LogEntries(store, !isShared)
    this.#onClosed = onClosed
    this.#appends = new GroupCommit(
      (group) => this.#writes.run(() => appendGroup(store, this.#logs, group)),
      appendedBytes,
      GROUP_BYTES_MAX,
    )
  }

  get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#calls.run(async () => {
      const value = await this.#store.get(catalogKey(collection, key))
      return value && documentOf(key, value)
    })
  }

  list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#calls.run(async () => {
      const bounds = keyBounds(range)
      if (bounds === undefined) return []
      const prefix = collectionKey(collection)
      const from = [prefix, bounds.from, new Uint8Array(bounds.isFromExcluded ? 1 : 0)]
      const found = await this.#store.scan({
        from: concatBytes(from),
        to: concatBytes([prefix, bounds.to]),
        limit: range.limit,
      })
      return found.map(([key, value]) => documentOf(lossyTextOf(key.subarray(prefix.length)), value))
    })
  }

  commit(changes: readonly CatalogChange[]): Promise<void> {
    return this.#calls.run(async () => {
      const serialized = serializeChanges(changes)
      await this.#writes.run(() =>
        transact(this.#store, this.#logs, () => draftCommit(this.#store, this.#logs, serialized)),
      )
    })
  }

  head(logId: string): Promise<Head | undefined> {
    return this.#calls.run(async () => {
      const { log } = await this.#logs.current(logId)
      return log?.head
    })
  }

  append(request: AppendRequest): Promise<void> {
    return this.#calls.run(async () => {
      try {
        await this.#appends.add(request)
        this.#isFull = false
        this.#mergeLater(request.logId)
      } catch (error) {
        if (StorageFailure.is(error) && error.kind === 'quota') this.#isFull = true
        throw error
      }
    })
  }

  /**
   * Merges the blocks of a log in the background if there are enough. The blocks stay as they are after a
   * failure: another attempt would read them again, so it waits for as many more.
   */
  #mergeLater(logId: string): void {
    const unmerged = this.#logs.cached(logId)?.log?.unmerged ?? 0
    if (unmerged < (this.#mergedFrom.get(logId) ?? MERGED_BLOCKS)) return
    this.#mergedFrom.set(logId, Number.POSITIVE_INFINITY)
    const merged = this.#calls.run(() => this.#writes.run(() => mergeBlocks(this.#store, this.#logs, logId)))
    merged.then(
      () => this.#mergedFrom.delete(logId),
      () => this.#mergedFrom.set(logId, unmerged + MERGED_BLOCKS),
    )
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#calls.run(() => readLogBlocks(this.#store, this.#logs, logId, range))
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#calls.run(() =>
      reclaimBlocks(this.#store, this.#logs, limits, (batch) => this.#writes.run(batch)),
    )
  }

  measure(logIds: readonly string[]): Promise<number[]> {
    return this.#calls.run(() =>
      Promise.all(logIds.map(async (logId) => (await this.#logs.current(logId)).log?.meteredBytes ?? 0)),
    )
  }

  isFull(): boolean {
    return this.#isFull
  }

  close(): Promise<void> {
    return this.#calls.close(async () => {
      try {
        await this.#store.close()
      } finally {
        this.#onClosed?.()
      }
    })
  }
}

function documentOf(key: string, value: Uint8Array): Document {
  const { text, version } = decodeDocumentValue(value)
  return { key, value: parseJson(text), version }
}

/** Reads what the changes name, and drafts the batch that makes them. */
async function draftCommit(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  changes: readonly SerializedChange[],
): Promise<Draft> {
  const documents = new Map<string, { readonly key: Uint8Array; value: Uint8Array | undefined }>()
  const entries = new Map<string, LogEntry>()
  /** Documents that the changes expect something of: all others are replaced whatever they contain. */
  const expected = new Set<string>()
  await Promise.all(
    changes.map(async (change) => {
      if ('logId' in change) {
        entries.set(change.logId, await logs.current(change.logId))
        return
      }
      const name = nameOf(change.collection, change.key)
      const key = catalogKey(change.collection, change.key)
      if (change.expect !== undefined) expected.add(name)
      documents.set(name, { key, value: await store.get(key) })
    }),
  )
  const versions: DocumentVersions = {
    versionOf(collection, key) {
      const { value } = documents.get(nameOf(collection, key))!
      return value && decodeDocumentValue(value).version
    },
    nextVersion: randomVersion,
  }
  const plan = planCommit(changes, versions, { headOf: (logId) => entries.get(logId)!.log?.head })
  const draft = new Draft(changes.some(({ kind }) => kind === 'delete' || kind === 'delete-log'))
  for (const name of expected) {
    const { key, value } = documents.get(name)!
    draft.expected.push([key, value])
  }
  for (const { collection, key, content } of plan.documents) {
    if (content === undefined) draft.deletes.push(catalogKey(collection, key))
    else draft.puts.push([catalogKey(collection, key), encodeDocumentValue(content.text, content.version)])
  }
  for (const { logId, head } of plan.logs) {
    const entry = entries.get(logId)!
    draft.putLog(logId, entry, head && { ...(entry.log ?? EMPTY_LOG), head })
  }
  return draft
}

/** Unique, because names of collections do not contain U+0000. */
function nameOf(collection: string, key: string): string {
  return `${collection}\0${key}`
}
