/** The storage contract and its errors, for authors of storages. */

export type { Trim } from '../core/retention.ts'
export { BATCH_ENCODED_BYTES_MAX, BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
export type { StreamPosition } from '../model/position.ts'
export type { Clock, ScheduleOptions } from '../runtime/clock.ts'
export type * from './contract.ts'
export { emptyHead, identityOf, isSameHead } from './contract.ts'
export { StorageConflict, StorageFailure, type StorageFailureKind } from './errors.ts'
export { splitBlock } from './record-spans.ts'
export { SEALED_BLOCK_BYTES_MAX } from './sealed-block.ts'
