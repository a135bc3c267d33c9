/** @internal */

export type { AppendOptions, AppendSession, AppendTicket } from './api/append-session.ts'
export type { Basin, CreateOptions } from './api/basin.ts'
export type { CallOptions } from './api/call-options.ts'
export type { BasinOptions, Headwater } from './api/headwater.ts'
export type { JsonRecord, StandardSchema } from './api/json-codec.ts'
export type { JsonBatch, JsonStream } from './api/json-stream.ts'
export type { JsonAppendSession, JsonProducer } from './api/json-writers.ts'
export type { ListAllQuery } from './api/list-all.ts'
export type { Producer, ProducerOptions, RecordAck, RecordTicket } from './api/producer.ts'
export type { ReadOptions, ReadSession, ReadSessionEvent } from './api/read-session.ts'
/** @internal */
export type { ReadEvent, RecordCursor } from './api/record-cursor.ts'
export type { Stream, StreamOptions } from './api/stream.ts'
export type { Resource } from './core/permission.ts'
export type { Engine } from './engine/api/engine.ts'
/** @internal */
export type { EngineBasin } from './engine/api/engine-basin.ts'
/** @internal */
export type { EngineStream } from './engine/api/engine-stream.ts'
export type { CipherSuite } from './engine/encryption/cipher-suite.ts'
/** @internal */
export type { ReadCursor } from './engine/log/read-cursor.ts'
export { open } from './engine/open.ts'
export type { EngineLimits, OpenOptions } from './engine/options.ts'
export type { EngineStats } from './engine/service/stats.ts'
export type { RestoredStream } from './engine/service/stream-service.ts'
export type { UsageConnection } from './engine/service/stream-target.ts'
export type { HistogramCounts, UsageCounters, UsageModule } from './engine/service/usage.ts'
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
export { fenceRecord, trimRecord } from './model/command.ts'
export type {
  BasinConfig,
  BasinConfigInput,
  BasinReconfiguration,
  Cipher,
  RetentionPolicy,
  StorageClass,
  StreamConfig,
  StreamConfigInput,
  StreamReconfiguration,
  TimestampingMode,
} from './model/config.ts'
export type { EncryptionKey } from './model/encryption-key.ts'
export { type ErrorCode, type ErrorDetails, HeadwaterError } from './model/errors.ts'
export type {
  AppendAck,
  BasinInfo,
  ListQuery,
  LocationInfo,
  Page,
  Provisioned,
  ProvisionResult,
  StreamInfo,
} from './model/info.ts'
export type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricInterval,
  MetricPoint,
  MetricSet,
  MetricsQuery,
  MetricUnit,
  StreamMetricSet,
} from './model/metrics.ts'
export type { Operation, OperationLevel } from './model/operations.ts'
export { OPERATIONS } from './model/operations.ts'
export type { StreamPosition } from './model/position.ts'
export type { ReadQuery } from './model/read-query.ts'
export type { Command, Header, RecordAs, RecordFormat, SequencedRecord, TextRecord } from './model/record.ts'
export type { EncryptionKeyInput } from './model/redacted-key.ts'
export type { Time } from './model/validation.ts'
export type { Clock, ScheduleOptions } from './runtime/clock.ts'
export { systemClock } from './runtime/clock.ts'
export type { Storage } from './storage/contract.ts'
export type { ReadBatch } from './storage/record-batch.ts'
