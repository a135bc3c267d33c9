import type { Schema, StoreName } from './schema.ts'

/** What a resolved append survives. `strict`: power loss. `relaxed`: a crash of the browser. */
export type Durability = 'strict' | 'relaxed'

/** A transaction whose stores have the types of the schema. */
export interface Transaction extends Omit<IDBTransaction, 'objectStore'> {
  objectStore<Name extends StoreName>(name: Name): Store<Name>
}

/** An object store, or one of its indexes. */
export interface Source<Key, Value> {
  get(query: IDBValidKey | IDBKeyRange): IDBRequest<Value | undefined>
  getKey(query: IDBValidKey | IDBKeyRange): IDBRequest<Key | undefined>
  getAll(query: IDBKeyRange, count?: number): IDBRequest<Value[]>
  getAllKeys(query: IDBKeyRange, count?: number): IDBRequest<Key[]>
}

interface Store<Name extends StoreName> extends Source<Schema[Name]['key'], Schema[Name]['value']> {
  put(value: Schema[Name]['value'], key: Schema[Name]['key']): void
  add(value: Schema[Name]['value'], key: Schema[Name]['key']): void
  delete(query: Schema[Name]['key'] | IDBKeyRange): void
  openCursor(query: IDBKeyRange, direction: IDBCursorDirection): IDBRequest<Cursor<Name> | null>
  index(name: string): Source<Schema[Name]['key'], Schema[Name]['value']>
}

interface Cursor<Name extends StoreName> extends IDBCursorWithValue {
  readonly value: Schema[Name]['value']
}

/** Begins a transaction. Throws if the connection is lost. */
export function begin(
  db: IDBDatabase,
  stores: readonly StoreName[],
  mode: 'readonly' | 'readwrite',
  durability: Durability | 'default' = 'default',
): Transaction {
  return db.transaction(stores, mode, { durability }) as Transaction
}

/** Runs `work` in one transaction. Resolves when it is durable. If `work` rejects, nothing is changed. */
export async function write<Result>(
  db: IDBDatabase,
  stores: readonly StoreName[],
  durability: Durability,
  work: (transaction: Transaction) => Promise<Result>,
): Promise<Result> {
  const transaction = begin(db, stores, 'readwrite', durability)
  const completed = completionOf(transaction)
  let result: Result
  try {
    result = await work(transaction)
  } catch (error) {
    abort(transaction)
    // A failed request aborts its transaction, and all other requests then fail with an unspecific error.
    const cause = await completed.then(() => undefined, causeOf)
    throw cause ?? error
  }
  await completed
  return result
}

/**
 * Resolves to the result of a request. Requests that write need no call: one that fails aborts its
 * transaction.
 */
export function resultOf<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

/** Resolves when the transaction is complete. A failed one may fire nothing but `abort`. */
export function completionOf(transaction: Transaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () =>
      reject(transaction.error ?? new DOMException('the transaction was aborted', 'AbortError'))
  })
}

function abort(transaction: Transaction): void {
  try {
    transaction.abort()
  } catch {
    // It has already ended.
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof DOMException && error.name === 'AbortError' ? undefined : error
}
