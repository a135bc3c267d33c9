import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { macrotask } from '../macrotask.ts'
import type { TokenDocument } from './documents.ts'

/** How long a token is still listed after it has expired, in milliseconds: a day. */
const EXPIRED_LISTED_MS = 86_400_000
const PAGE = 100

/** Deletes the documents of tokens that expired a day ago, page by page. */
export async function deleteExpiredTokens(
  session: StorageSession,
  now: number,
  isClosed: () => boolean,
): Promise<void> {
  let after = ''
  while (!isClosed()) {
    const documents = await session.list('tokens', { prefix: '', after, limit: PAGE })
    for (const { key, value, version } of documents) {
      const { expiresAt } = value as unknown as TokenDocument
      if (expiresAt === null || expiresAt + EXPIRED_LISTED_MS > now) continue
      await deleteOne(session, { kind: 'delete', collection: 'tokens', key, expect: version })
    }
    if (documents.length < PAGE) return
    after = documents.at(-1)!.key
    await macrotask()
  }
}

/** One that was revoked or issued anew meanwhile is left as it is. */
async function deleteOne(session: StorageSession, change: CatalogChange): Promise<void> {
  try {
    await session.commit([change])
  } catch (error) {
    if (!StorageConflict.is(error)) throw error
  }
}
