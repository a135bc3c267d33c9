/** The storage contract and its errors, and the parts that storages are made of, for authors of storages. */

export { type ClockOffset, measuredOffset, refineOffset } from '../core/clocks.ts'
export {
  blockExpiresAt,
  isBlockExpired,
  type RetentionExtension,
  reclaimablePoint,
  type Trim,
} from '../core/retention.ts'
export type { ProducerState, WriteState } from '../core/sequence.ts'
export {
  compareUtf8,
  concatBytes,
  EMPTY_BYTES,
  lossyTextOf,
  UNBUFFERED_BYTES_MAX,
  utf8,
  utf8Length,
} from '../model/bytes.ts'
export { invalid } from '../model/errors.ts'
export { BATCH_ENCODED_BYTES_MAX, BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
export type { StreamPosition } from '../model/position.ts'
export { assertOptions, hasMethod, type MembersOf, oneOf } from '../model/validation.ts'
export { type Clock, type ScheduleOptions, systemClock, trackExternalWork } from '../runtime/clock.ts'
export { macrotask } from '../runtime/macrotask.ts'
export { SerialQueue } from '../runtime/queues.ts'
export { idFrom, secureRandom } from '../runtime/random.ts'
export { type AppendPlan, type LogAppends, planAppends } from './append-plan.ts'
export { BlockCollector, type BlockSummary } from './block-collector.ts'
export { appendedBytes, mergeableBlocks, mergedBlock, splitBlock } from './block-sizes.ts'
export {
  type CommitPlan,
  type DocumentUpdate,
  type DocumentVersions,
  type KeyBounds,
  keyBounds,
  type LogHeads,
  type LogUpdate,
  planCommit,
  randomVersion,
  type SerializedChange,
  serializeChanges,
} from './commit-plan.ts'
export type * from './contract.ts'
export { cutBlock, cutRecords, wantsPart } from './cut-block.ts'
export { StorageConflict, StorageFailure, type StorageFailureKind, storageClosed } from './errors.ts'
export { GroupCommit, type PendingItem } from './group-commit.ts'
export {
  appendConflict,
  assertExpectedHead,
  emptyHead,
  hasNewTrim,
  identityOf,
  isSameHead,
  type WriteStateChange,
  withWriteStateChange,
  writeStateChange,
} from './heads.ts'
export { lowerBound, OrderedList, RecentMap } from './ordered-list.ts'
export { SEALED_BLOCK_BYTES_MAX } from './sealed-block.ts'
export { ChangeNotifier, SessionCalls } from './session-calls.ts'
