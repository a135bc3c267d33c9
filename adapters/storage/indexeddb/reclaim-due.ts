import type { ReclaimLimits } from '../../../src/storage/contract.ts'
import { choresUntil } from './chores.ts'
import type { DatabaseConnection } from './connection.ts'

/**
 * Resolves to whether there may be something to free. Most runs of the engine find nothing: they lock no
 * store for writing.
 */
export function isReclaimDue(
  connection: DatabaseConnection,
  { now, trimmedBefore }: ReclaimLimits,
): Promise<boolean> {
  return connection.run(async (db) => {
    const transaction = db.transaction(['pages', 'chores'])
    const chores = transaction.objectStore('chores')
    const due = await Promise.all([
      chores.getKey(choresUntil('deleted', 0)),
      chores.getKey(choresUntil('expired', now)),
      chores.getKey(choresUntil('trimmed', trimmedBefore)),
      transaction.objectStore('pages').index('by-expiry').getKey(IDBKeyRange.upperBound(now)),
    ])
    // The engine may close the database next, which open transactions would delay.
    await transaction.done
    return due.some((key) => key !== undefined)
  })
}
