import { utf8 } from '../../../src/model/bytes.ts'
import type { Collection } from '../../../src/storage/contract.ts'
import type { DocumentKey } from './schema.ts'

export interface DocumentName {
  readonly collection: Collection
  readonly key: string
}

export function documentKey({ collection, key }: DocumentName): DocumentKey {
  return [collection, new Uint8Array(utf8(key))]
}
