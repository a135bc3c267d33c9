import { unwrap } from 'idb'
import type { IndexedDatabase, StoreName, WriteTransaction } from './schema.ts'

/** `strict` waits for the disk, `relaxed` for the operating system. */
export type TransactionDurability = 'strict' | 'relaxed'

/** Runs `work` in one transaction. Resolves when it is durable. If `work` rejects, nothing is changed. */
export async function write<Result>(
  db: IndexedDatabase,
  stores: readonly StoreName[],
  durability: TransactionDurability,
  work: (transaction: WriteTransaction, raw: IDBTransaction) => Promise<Result>,
): Promise<Result> {
  const transaction: WriteTransaction = db.transaction([...stores], 'readwrite', { durability })
  const raw = unwrap(transaction)
  // `done` rejects before the abort is complete, and loses its cause.
  transaction.done.catch(() => {})
  const completed = completionOf(raw)
  let result: Result
  try {
    result = await work(transaction, raw)
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
