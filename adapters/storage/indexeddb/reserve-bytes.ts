import type { Connection } from './connection.ts'
import { RESERVE } from './schema.ts'
import { writeIn } from './transactions.ts'

/** So many that Chromium keeps them in a file of their own, whose space is free as soon as it is deleted; and enough for many trims. */
const RESERVE_BYTES = 128 * 1024
/** Of random bytes that a browser gives in one go. */
const RANDOM_BYTES_MAX = 65_536

/** Puts the reserve by, unless it is. */
export function putBy(connection: Connection): Promise<void> {
  return connection.run((db) =>
    writeIn(db, ['reserve'], 'relaxed', async (transaction) => {
      const store = transaction.objectStore('reserve')
      const isThere = (await store.getKey(RESERVE)) !== undefined
      if (!isThere) await store.put(randomBytes(RESERVE_BYTES), RESERVE)
    }),
  )
}

/** Gives the reserve up. Resolves to whether there was one. */
export function giveUp(connection: Connection): Promise<boolean> {
  return connection.run((db) =>
    writeIn(db, ['reserve'], 'relaxed', async (transaction) => {
      const store = transaction.objectStore('reserve')
      const isThere = (await store.getKey(RESERVE)) !== undefined
      if (isThere) await store.delete(RESERVE)
      return isThere
    }),
  )
}

/** They do not compress, so they take the space that they seem to. */
function randomBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let start = 0; start < length; start += RANDOM_BYTES_MAX) {
    crypto.getRandomValues(bytes.subarray(start, start + RANDOM_BYTES_MAX))
  }
  return bytes
}
