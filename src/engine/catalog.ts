import type { Document, StorageSession } from '../storage/contract.ts'
import { StorageConflict } from '../storage/errors.ts'
import { type BasinDocument, type StreamDocument, streamKey } from './documents.ts'
import { conflictError, storageError } from './errors.ts'

/** A document and the version to expect when changing it. */
export interface Versioned<Value> {
  readonly value: Value
  readonly version: number
}

const CONFLICTS_MAX = 20

/** The engine's view of the catalog: typed documents, storage failures as {@link HeadwaterError}. */
export class Catalog {
  readonly #session: StorageSession
  /** The last change under way of each key. */
  readonly #changing = new Map<string, Promise<void>>()

  constructor(session: StorageSession) {
    this.#session = session
  }

  async basin(name: string): Promise<Versioned<BasinDocument> | undefined> {
    return versioned(await storageError(this.#session.get('basins', name)))
  }

  async stream(basin: string, name: string): Promise<Versioned<StreamDocument> | undefined> {
    return versioned(await storageError(this.#session.get('streams', streamKey(basin, name))))
  }

  /**
   * Makes a change of what `key` names, after the changes of it that this engine was asked for before; again while another engine wins
   * the race for the same documents.
   */
  change<Result>(
    key: string,
    attempt: (commit: StorageSession['commit']) => Promise<Result>,
  ): Promise<Result> {
    const previous = this.#changing.get(key) ?? Promise.resolve()
    const change = previous.then(() => this.#withRetries(attempt))
    const settled = change.then(
      () => {},
      () => {},
    )
    this.#changing.set(key, settled)
    void settled.then(() => {
      if (this.#changing.get(key) === settled) this.#changing.delete(key)
    })
    return change
  }

  async #withRetries<Result>(
    attempt: (commit: StorageSession['commit']) => Promise<Result>,
  ): Promise<Result> {
    const commit: StorageSession['commit'] = (changes) => this.#session.commit(changes)
    for (let i = 0; i < CONFLICTS_MAX; i++) {
      try {
        return await storageError(attempt(commit))
      } catch (error) {
        if (!StorageConflict.is(error)) throw error
      }
    }
    throw conflictError()
  }
}

function versioned<Value>(document: Document | undefined): Versioned<Value> | undefined {
  return document && { value: document.value as unknown as Value, version: document.version }
}
