import { basinConfig, withDefaultRetention } from '../../core/config.ts'
import type { RetentionPolicy } from '../../model/config.ts'
import { assertValid } from '../../model/errors.ts'
import { type ListQuery, listLimit, type Page, pageOf } from '../../model/info.ts'
import { basinNameProblem, type StreamRef } from '../../model/names.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import {
  type BasinDocument,
  type Documents,
  documentPages,
  getDocument,
  listDocuments,
  putDocument,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import type { EngineContext } from '../context.ts'
import { assertNotDeleting, basinNotFound, conflictError } from '../errors.ts'

export type Commit = StorageSession['commit']

export const CONFLICTS_MAX = 20
const PAGE_DOCUMENTS = 100

/** Typed access to the documents of basins and streams, pages of documents, and serialized changes. */
export class Catalog {
  readonly #context: EngineContext
  readonly #session: StorageSession
  /** The latest change of each key that is being changed. */
  readonly #changes = new Map<string, Promise<unknown>>()

  constructor(context: EngineContext) {
    this.#context = context
    this.#session = context.session
  }

  basin(name: string): Promise<Versioned<BasinDocument> | undefined> {
    return getDocument(this.#session, 'basins', name)
  }

  stream({ basin, stream }: StreamRef): Promise<Versioned<StreamDocument> | undefined> {
    return getDocument(this.#session, 'streams', streamKey(basin, stream))
  }

  /** Rejects with `basin_not_found`. */
  async existingBasin(name: string): Promise<Versioned<BasinDocument>> {
    assertValid(basinNameProblem(name), 'basin')
    const basin = await this.basin(name)
    if (basin === undefined) throw basinNotFound(name)
    return basin
  }

  /** Rejects with `basin_not_found` or `basin_deletion_pending`. */
  async activeBasin(name: string): Promise<Versioned<BasinDocument>> {
    const basin = await this.existingBasin(name)
    assertNotDeleting(basin.value)
    return basin
  }

  /** Creates the basin with the default configuration unless it exists. */
  async createBasinIfMissing(name: string, defaultRetention: RetentionPolicy | undefined): Promise<void> {
    assertValid(basinNameProblem(name), 'basin')
    if ((await this.basin(name)) !== undefined) return
    await this.change(name, async (commit) => {
      if ((await this.basin(name)) !== undefined) return
      const config = withDefaultRetention(basinConfig({}), defaultRetention)
      const createdAt = this.#context.clock.now()
      await commit([putBasin({ name, createdAt, deletedAt: null, config, creationKey: null }, null)])
    })
  }

  /** A page of the documents whose keys begin with `keyPrefix`, which the query leaves out. */
  async page<From extends keyof Documents, Info>(
    collection: From,
    { prefix = '', startAfter = '', limit }: ListQuery,
    infoOf: (value: Documents[From]) => Info,
    keyPrefix = '',
  ): Promise<Page<Info>> {
    const size = listLimit(limit)
    const range = { prefix: keyPrefix + prefix, after: keyPrefix + startAfter, limit: size + 1 }
    const documents = await listDocuments(this.#session, collection, range)
    return pageOf(documents, size, ({ value }) => infoOf(value))
  }

  /**
   * Calls `work` with each document of a collection whose key begins with `prefix`, in order, until it
   * resolves to `'stop'` or the engine closes. Work that fails is reported, and the others go on. A conflict
   * is no failure: another engine did the work, or the object was used.
   */
  async forEach<From extends keyof Documents>(
    collection: From,
    prefix: string,
    work: (document: Versioned<Documents[From]>) => Promise<unknown>,
  ): Promise<void> {
    const { session, onBackgroundError, closing } = this.#context
    for await (const documents of documentPages(session, collection, prefix, PAGE_DOCUMENTS)) {
      for (const document of documents) {
        try {
          if ((await work(document)) === 'stop') return
        } catch (error) {
          if (!StorageConflict.is(error) && !closing.aborted) onBackgroundError(error)
        }
      }
      await macrotask()
      if (closing.aborted) return
    }
  }

  /** Resolves once the changes of a key have settled that were made so far. */
  async pendingChange(key: string): Promise<void> {
    await this.#changes.get(key)?.catch(() => {})
  }

  /**
   * Changes what `key` names, as {@link unlessConflicting} does. Changes of one key run in the order of the
   * calls.
   */
  async change<Result>(
    key: string,
    attempt: (commit: Commit, isRepeated: boolean) => Promise<Result>,
  ): Promise<Result> {
    const commit: Commit = (changes) => this.#session.commit(changes)
    const run = () => unlessConflicting((isRepeated) => attempt(commit, isRepeated))
    const change = this.#changes.has(key) ? this.pendingChange(key).then(run) : run()
    this.#changes.set(key, change)
    try {
      return await change
    } finally {
      if (this.#changes.get(key) === change) this.#changes.delete(key)
    }
  }
}

/**
 * Makes an attempt, and repeats it if it loses a race against another engine. Rejects with
 * `transaction_conflict` after 20 attempts.
 */
export async function unlessConflicting<Result>(
  attempt: (isRepeated: boolean) => Promise<Result>,
): Promise<Result> {
  for (let i = 0; i < CONFLICTS_MAX; i++) {
    try {
      return await attempt(i > 0)
    } catch (error) {
      if (!StorageConflict.is(error)) throw error
    }
  }
  throw conflictError()
}

export function putBasin(document: BasinDocument, expect: number | null): CatalogChange {
  return putDocument('basins', document.name, document, expect)
}

export function deleteStream({ value: { basin, name }, version }: Versioned<StreamDocument>): CatalogChange {
  return { kind: 'delete', collection: 'streams', key: streamKey(basin, name), expect: version }
}
