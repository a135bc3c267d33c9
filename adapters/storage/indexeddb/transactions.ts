import type { StoreName } from './schema.ts'
import type { ReadTransaction, WriteTransaction } from './typed-transaction.ts'

/** `strict`: an append resolves when it would survive a power loss; `relaxed`: when it would survive the end of the browser. */
export type Durability = 'strict' | 'relaxed'

export function beginRead(db: IDBDatabase, stores: readonly StoreName[]): ReadTransaction {
  return db.transaction([...stores], 'readonly') as ReadTransaction
}

export function beginWrite(
  db: IDBDatabase,
  stores: readonly StoreName[],
  durability: Durability,
): WriteTransaction {
  return db.transaction([...stores], 'readwrite', { durability }) as WriteTransaction
}

/** What is stored together or not at all. Resolves when it is durable. When `work` rejects, nothing is changed. */
export async function writeIn<Result>(
  db: IDBDatabase,
  stores: readonly StoreName[],
  durability: Durability,
  work: (transaction: WriteTransaction) => Promise<Result>,
): Promise<Result> {
  const transaction = beginWrite(db, stores, durability)
  const ended = endOf(transaction)
  let result: Result
  try {
    result = await work(transaction)
  } catch (error) {
    abort(transaction)
    // A request that fails ends its transaction, and every other request of it with an error that says nothing.
    const cause = await ended.then(() => undefined, causeOf)
    throw cause ?? error
  }
  await ended
  return result
}

/** Of a request that nobody waits for nothing is lost: what fails ends its transaction. */
export function resultOf<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

/** A failed transaction may fire nothing but `abort`. */
export function endOf(transaction: ReadTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () =>
      reject(transaction.error ?? new DOMException('the transaction was aborted', 'AbortError'))
  })
}

function abort(transaction: WriteTransaction): void {
  try {
    transaction.abort()
  } catch {
    // It has come to its end already.
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof DOMException && error.name === 'AbortError' ? undefined : error
}
