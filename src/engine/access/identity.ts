import type { Grant } from '../../core/permission.ts'
import type { CatalogChange, StorageSession } from '../../storage/contract.ts'
import { storageError } from '../errors.ts'

/** Who presented a token, as of a look at it. */
export interface Identity {
  readonly grant: Grant
  /** Of the token. */
  readonly digest: string
  /** Holds as long as the token is the one that was looked at: neither revoked nor replaced. */
  readonly unchanged: Extract<CatalogChange, { readonly kind: 'check' }>
}

export async function isUnchanged(session: StorageSession, { unchanged }: Identity): Promise<boolean> {
  const document = await storageError(session.get(unchanged.collection, unchanged.key))
  return document?.version === unchanged.expect
}
