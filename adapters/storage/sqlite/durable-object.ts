/**
 * A storage in the SQLite database of a Cloudflare Durable Object.
 *
 * @packageDocumentation
 */

import { invalid } from '../../../src/model/errors.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { SqliteRow } from './database.ts'
import { sqliteStorage } from './storage.ts'

/** The part of a Durable Object's `ctx.storage` that this storage uses. */
export interface ObjectStorage {
  /** Throws in a class that is not listed in `new_sqlite_classes`. */
  readonly sql: { exec(query: string, ...bindings: unknown[]): Iterable<SqliteRow> }
  /** Runs a transaction, which is rolled back if `work` throws. */
  transactionSync<Result>(work: () => Result): Result
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>
}

/** The storages that are open in an engine. */
const opened = new WeakSet<ObjectStorage>()

/**
 * Creates a storage in the SQLite database of a Durable Object, `ctx.storage`. Only this object has access to
 * it, so one engine has it open at a time. Does nothing until it is opened.
 *
 * ```ts
 * const hw = await open({ storage: durableObject(ctx.storage) })
 * ```
 *
 * An append resolves once `ctx.storage.sync()` has confirmed it. An object holds 10 GB; beyond that, appends
 * reject with `storage_full`. The names of its tables begin with `headwater_`.
 *
 * Throws `invalid` unless the argument is the storage of a Durable Object.
 */
export function durableObject(storage: ObjectStorage): Storage {
  if (typeof storage?.transactionSync !== 'function') {
    throw invalid("durableObject requires `ctx.storage`, the storage of a Durable Object's state", 'storage')
  }
  return sqliteStorage({
    name: 'durable-object',
    durability: 'power-loss',
    shared: false,
    open() {
      if (opened.has(storage)) {
        const message = 'another engine of this Durable Object has its storage open'
        throw new StorageFailure('blocked', message, { nothingWritten: true })
      }
      opened.add(storage)
      return {
        exec: (statement, values) => storage.sql.exec(statement, ...values),
        transaction: (work) => storage.transactionSync(work),
        sync: () => storage.sync(),
        close: () => void opened.delete(storage),
      }
    },
  })
}
