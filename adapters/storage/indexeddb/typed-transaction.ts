import type { Schema, StoreName } from './schema.ts'

type Key<Name extends StoreName> = Schema[Name]['key']
type Value<Name extends StoreName> = Schema[Name]['value']

/** The rows of a store, in the order of their keys or of an index. */
export interface Rows<Name extends StoreName> {
  get(key: Key<Name> | IDBKeyRange): IDBRequest<Value<Name> | undefined>
  getKey(key: Key<Name> | IDBKeyRange): IDBRequest<Key<Name> | undefined>
  getAll(range: IDBKeyRange, count: number): IDBRequest<Value<Name>[]>
  getAllKeys(range: IDBKeyRange, count: number): IDBRequest<Key<Name>[]>
}

interface ReadStore<Name extends StoreName> extends Rows<Name> {
  index(name: Schema[Name] extends { index: infer Index } ? Index : never): Rows<Name>
}

interface WriteStore<Name extends StoreName> extends ReadStore<Name> {
  put(value: Value<Name>, key: Key<Name>): IDBRequest
  delete(key: Key<Name> | IDBKeyRange): IDBRequest
}

/** A browser's transaction, with the types of the {@link Schema}. */
export interface ReadTransaction extends Omit<IDBTransaction, 'objectStore'> {
  objectStore<Name extends StoreName>(name: Name): ReadStore<Name>
}

export interface WriteTransaction extends Omit<IDBTransaction, 'objectStore'> {
  objectStore<Name extends StoreName>(name: Name): WriteStore<Name>
}
