import { basinConfig, withDefaultRetention } from '../../core/config.ts'
import { listLimit, pageOf } from '../../core/listing.ts'
import type { RetentionPolicy } from '../../model/config.ts'
import { assertValid } from '../../model/errors.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import { basinNameProblem, type StreamRef } from '../../model/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import {
  type BasinDocument,
  type Documents,
  getDocument,
  listDocuments,
  putDocument,
  type StreamDocument,
  streamKey,
  type Versioned,
} from '../../storage/documents.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { conflictError } from '../log/errors.ts'
import { assertNotDeleting, basinNotFound } from './errors.ts'

export type Commit = StorageSession['commit']

export const CONFLICTS_MAX = 20

/** Typed access to the documents of basins and streams, pages of documents, and serialized changes. */
export class Catalog {
  readonly #session: StorageSession
  readonly #clock: Clock
  /** The latest change of each key that is being changed. */
  readonly #changes = new Map<string, Promise<unknown>>()

  constructor(session: StorageSession, clock: Clock) {
    this.#session = session
    this.#clock = clock
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
      const createdAt = this.#clock.now()
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

export function putBasin(document: BasinDocument, expect: number | null): CatalogChange {
  return putDocument('basins', document.name, document, expect)
}

/** Deletes the document of a stream. */
export function deleteStream({ value: { basin, name }, version }: Versioned<StreamDocument>): CatalogChange {
  return { kind: 'delete', collection: 'streams', key: streamKey(basin, name), expect: version }
}
