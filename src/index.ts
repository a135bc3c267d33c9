export type { Resource } from './core/permission.ts'
export type { AppendSession, AppendTicket } from './engine/append-session.ts'
export { Basin } from './engine/basin.ts'
export type { Connection } from './engine/context.ts'
export type { CreateBasinOptions } from './engine/control/basins.ts'
export type { RestoredStream } from './engine/control/restored-stream.ts'
export type { CipherSuite } from './engine/encryption/cipher-suite.ts'
export { type BasinOptions, Headwater } from './engine/headwater.ts'
export { open } from './engine/open.ts'
export type { EngineLimits, OpenOptions } from './engine/options.ts'
export { Producer, type ProducerOptions, type RecordAck, type RecordTicket } from './engine/producer.ts'
export type { ReadCursor, ReadEvent } from './engine/read-cursor.ts'
export { type ReadOptions, ReadSession } from './engine/read-session.ts'
export type { EngineStats } from './engine/stats.ts'
export { Stream, type StreamOptions } from './engine/stream.ts'
export { systemClock } from './engine/system-clock.ts'
export type { UsageCounters } from './engine/usage/usage-counters.ts'
export type { ViewOptions } from './engine/views.ts'
export type {
  AccessScope,
  AccessScopeInput,
  AccessTokenInfo,
  AccessTokenInput,
  GroupPermissions,
  OperationGroups,
  ResourceSet,
} from './model/access.ts'
export type { AppendConditions, BytesOrText, RecordInput } from './model/append-input.ts'
export { type Command, fenceRecord, trimRecord } from './model/command.ts'
export type * from './model/config.ts'
export type { EncryptionKey, EncryptionKeyInput } from './model/encryption-key.ts'
export { type ErrorCode, type ErrorDetails, HeadwaterError } from './model/errors.ts'
export type * from './model/info.ts'
export type * from './model/metrics.ts'
export type { Operation, OperationLevel } from './model/operations.ts'
export { OPERATIONS } from './model/operations.ts'
export type { StreamPosition } from './model/position.ts'
export type { ReadQuery } from './model/read-query.ts'
export { type Header, type SequencedRecord, type TextRecord, textRecord } from './model/record.ts'
export type { Clock, ScheduleOptions } from './storage/clock.ts'
export type * from './storage/contract.ts'
export { emptyHead } from './storage/empty-head.ts'
export { StorageConflict, StorageFailure, type StorageFailureKind } from './storage/errors.ts'
export type { ReadBatch } from './storage/record-batch.ts'
