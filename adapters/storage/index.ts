/**
 * The storage contract and its errors, the parts that storages are made of, and a storage on any ordered
 * key-value store, for authors of storages.
 *
 * @packageDocumentation
 */

export * from '../../src/storage/index.ts'
export { type OrderedKeyValueOptions, orderedKeyValueStorage } from './key-value/storage.ts'
export type { KeyRange, KeyValue, KeyValueBatch, OrderedKeyValueStore } from './key-value/store.ts'
