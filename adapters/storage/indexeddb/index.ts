/**
 * A storage in IndexedDB, which tabs and workers of an origin share.
 *
 * @packageDocumentation
 */

export type { LowSpace, StorageUsage } from './space.ts'
export { type IndexedDbOptions, type IndexedDbStorage, indexedDb } from './storage.ts'
export { type TrimmableStream, type TrimWhenLowOptions, trimWhenLow } from './trim-when-low.ts'
