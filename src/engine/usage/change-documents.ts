import type {
  CatalogChange,
  Collection,
  Document,
  JsonValue,
  StorageSession,
} from '../../storage/contract.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { conflictError } from '../errors.ts'

const CONFLICTS_MAX = 20

/** The values that documents are to have, by key; null deletes. What is not named stays. */
type Values = ReadonlyMap<string, JsonValue | null>

/**
 * Changes documents of a collection in one commit, on condition that they are still those that were looked at; looks again when another engine was
 * faster. `change` may be called several times. Keys are distinct.
 */
export async function changeDocuments(
  session: StorageSession,
  collection: Collection,
  keys: readonly string[],
  change: (values: ReadonlyMap<string, JsonValue | undefined>) => Values,
): Promise<void> {
  for (let attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
    const found = await Promise.all(keys.map((key) => session.get(collection, key)))
    const documents = new Map(keys.map((key, index) => [key, found[index]]))
    const values = new Map(keys.map((key, index) => [key, found[index]?.value]))
    const changes = [...change(values)].flatMap(([key, value]) =>
      asChange(collection, key, value, documents.get(key)),
    )
    if (changes.length === 0) return
    try {
      await session.commit(changes)
      return
    } catch (error) {
      if (!StorageConflict.is(error)) throw error
    }
  }
  throw conflictError()
}

function asChange(
  collection: Collection,
  key: string,
  value: JsonValue | null,
  document: Document | undefined,
): CatalogChange[] {
  if (value !== null) return [{ kind: 'put', collection, key, value, expect: document?.version ?? null }]
  return document === undefined ? [] : [{ kind: 'delete', collection, key, expect: document.version }]
}
