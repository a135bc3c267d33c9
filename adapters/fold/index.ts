/**
 * Values that are derived from all records of a stream, with snapshots.
 *
 * @packageDocumentation
 */

export type { ChangeSource, NumberedItem, StreamChange } from '../../src/sync/changes.ts'
export type { FoldedRecord } from '../../src/sync/fold.ts'
export { Fold, fold } from './fold.ts'
export type { FoldOptions } from './options.ts'
