import type { Index, Schema, StoreName } from './schema.ts'

/** What a resolved append survives. `strict`: power loss. `relaxed`: a crash of the browser. */
export type Durability = 'strict' | 'relaxed'

/** The rows of an object store or of one of its indexes, read with promises. */
export class Rows<Key, Row> {
  readonly #source: IDBObjectStore | IDBIndex

  constructor(source: IDBObjectStore | IDBIndex) {
    this.#source = source
  }

  get(query: Key | IDBKeyRange): Promise<Row | undefined> {
    return resultOf(this.#source.get(query as IDBValidKey))
  }

  getKey(query: Key | IDBKeyRange): Promise<Key | undefined> {
    return resultOf(this.#source.getKey(query as IDBValidKey) as IDBRequest)
  }

  getAll(range: IDBKeyRange, count?: number): Promise<Row[]> {
    return resultOf(this.#source.getAll(range, count))
  }

  getAllKeys(range: IDBKeyRange, count?: number): Promise<Key[]> {
    return resultOf(this.#source.getAllKeys(range, count) as IDBRequest)
  }

  /** The last row in the range that matches. */
  findLast(range: IDBKeyRange, matches: (row: Row) => boolean): Promise<Row | undefined> {
    return new Promise((resolve, reject) => {
      const request = this.#source.openCursor(range, 'prev')
      request.onerror = () => reject(request.error)
      request.onsuccess = () => {
        const cursor = request.result
        if (cursor !== null && !matches(cursor.value)) cursor.continue()
        else resolve(cursor?.value)
      }
    })
  }
}

/** An object store. Writes are not awaited: one that fails aborts the transaction. */
export class Store<Name extends StoreName> extends Rows<Schema[Name]['key'], Schema[Name]['value']> {
  readonly #store: IDBObjectStore

  constructor(store: IDBObjectStore) {
    super(store)
    this.#store = store
  }

  index(name: Index<Name>): Rows<Schema[Name]['key'], Schema[Name]['value']> {
    return new Rows(this.#store.index(name))
  }

  add(row: Schema[Name]['value'], key: Schema[Name]['key']): void {
    this.#store.add(row, key)
  }

  put(row: Schema[Name]['value'], key: Schema[Name]['key']): void {
    this.#store.put(row, key)
  }

  delete(query: Schema[Name]['key'] | IDBKeyRange): void {
    this.#store.delete(query)
  }
}

/** A transaction with typed object stores. */
export class Transaction {
  readonly #raw: IDBTransaction

  constructor(raw: IDBTransaction) {
    this.#raw = raw
  }

  objectStore<Name extends StoreName>(name: Name): Store<Name> {
    return new Store(this.#raw.objectStore(name))
  }
}

/** Runs `work` in one transaction. Resolves when it is durable. If `work` rejects, nothing is changed. */
export async function write<Result>(
  db: IDBDatabase,
  stores: readonly StoreName[],
  durability: Durability,
  work: (transaction: Transaction) => Promise<Result>,
): Promise<Result> {
  const raw = db.transaction(stores, 'readwrite', { durability })
  const completed = completionOf(raw)
  let result: Result
  try {
    result = await work(new Transaction(raw))
  } catch (error) {
    abort(raw)
    // A failed request aborts its transaction, and all other requests then fail with an unspecific error.
    const cause = await completed.then(() => undefined, causeOf)
    throw cause ?? error
  }
  await completed
  return result
}

/** Resolves when the transaction is complete. A failed one may fire nothing but `abort`. */
export function completionOf(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () =>
      reject(transaction.error ?? new DOMException('the transaction was aborted', 'AbortError'))
  })
}

function resultOf<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

function abort(transaction: IDBTransaction): void {
  try {
    transaction.abort()
  } catch {
    // It has already ended.
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof DOMException && error.name === 'AbortError' ? undefined : error
}
