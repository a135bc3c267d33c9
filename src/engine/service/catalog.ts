import { listLimit, pageOf } from '../../core/listing.ts'
import { assertValid } from '../../model/errors.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import { basinNameProblem, type StreamRef } from '../../model/names.ts'
import type { StorageSession } from '../../storage/contract.ts'
import {
  type BasinDocument,
  type Documents,
  getDocument,
  listDocuments,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { conflictError } from '../log/errors.ts'
import { assertNotDeleting, basinNotFound } from '../streams/errors.ts'

export type Commit = StorageSession['commit']

export const CONFLICTS_MAX = 20

/** Typed access to the documents of basins and streams, pages of documents, and serialized changes. */
export class Catalog {
  readonly #session: StorageSession
  /** The latest change of each key that is being changed. */
  readonly #changes = new Map<string, Promise<unknown>>()

  constructor(session: StorageSession) {
    this.#session = session
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

  /** Resolves once the changes of a key have settled that were made so far. */
  async pendingChange(key: string): Promise<void> {
    await this.#changes.get(key)?.catch(() => {})
  }

  /**
   * Changes what `key` names. Changes of one key run in the order of the calls. An attempt that loses a race
   * against another engine is repeated. Rejects with `transaction_conflict` after 20 attempts.
   */
  async change<Result>(
    key: string,
    attempt: (commit: Commit, isRepeated: boolean) => Promise<Result>,
  ): Promise<Result> {
    const change = this.#changeAfter(this.#changes.get(key), attempt)
    this.#changes.set(key, change)
    try {
      return await change
    } finally {
      if (this.#changes.get(key) === change) this.#changes.delete(key)
    }
  }

  async #changeAfter<Result>(
    earlier: Promise<unknown> | undefined,
    attempt: (commit: Commit, isRepeated: boolean) => Promise<Result>,
  ): Promise<Result> {
    // Its caller learns of a failure.
    if (earlier !== undefined) await earlier.catch(() => {})
    for (let i = 0; i < CONFLICTS_MAX; i++) {
      try {
        return await attempt((changes) => this.#session.commit(changes), i > 0)
      } catch (error) {
        if (!StorageConflict.is(error)) throw error
      }
    }
    throw conflictError()
  }
}
