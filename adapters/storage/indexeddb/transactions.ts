import { unwrap } from 'idb'
import type { Database, StoreName, WriteTransaction } from './schema.ts'

/** `strict`: an append resolves when it would survive a power loss; `relaxed`: when it would survive the end of the browser. */
export type Durability = 'strict' | 'relaxed'

/** What is stored together or not at all. Resolves when it is durable. When `work` rejects, nothing is changed. */
export async function writeIn<Result>(
  db: Database,
  stores: readonly StoreName[],
  durability: Durability,
  work: (transaction: WriteTransaction, raw: IDBTransaction) => Promise<Result>,
): Promise<Result> {
  const transaction: WriteTransaction = db.transaction([...stores], 'readwrite', { durability })
  const raw = unwrap(transaction)
  // It rejects before it is known that nothing was stored, and forgets why.
  transaction.done.catch(() => {})
  const ended = endOf(raw)
  let result: Result
  try {
    result = await work(transaction, raw)
  } catch (error) {
    abort(raw)
    // A request that fails ends its transaction, and every other request of it with an error that says nothing.
    const cause = await ended.then(() => undefined, causeOf)
    throw cause ?? error
  }
  await ended
  return result
}

/** A failed transaction may fire nothing but `abort`. */
export function endOf(transaction: IDBTransaction): Promise<void> {
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
    // It has come to its end already.
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof DOMException && error.name === 'AbortError' ? undefined : error
}
