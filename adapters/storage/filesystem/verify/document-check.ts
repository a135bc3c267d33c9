import { utf8Length } from '../../../../src/model/bytes.ts'
import type { Collection } from '../../../../src/storage/contract.ts'
import type { CatalogEntry } from '../catalog.ts'

const COLLECTIONS: Readonly<Record<Collection, true>> = {
  basins: true,
  streams: true,
  deadlines: true,
  tokens: true,
  usage: true,
  settings: true,
}
const KEY_BYTES_MAX = 1024

/** What every document has to be, whatever it says. Throws `RangeError` when it is not. */
export function checkDocument({ collection, key, text }: CatalogEntry): void {
  if (!Object.hasOwn(COLLECTIONS, collection)) throw new RangeError('a document of an unknown collection')
  const bytes = utf8Length(key)
  if (bytes > KEY_BYTES_MAX) throw new RangeError(`a document of ${collection} has a key of ${bytes} bytes`)
  try {
    JSON.parse(text)
  } catch {
    // What the parser says repeats a part of the text, which may be secret.
    throw new RangeError(`a document of ${collection} is no JSON`)
  }
}
