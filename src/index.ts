/**
 * The engine and the interface that it shares with the client: `open`, basins, streams, sessions and errors.
 *
 * @packageDocumentation
 */

export type { AppendOptions, AppendSession, AppendTicket } from './api/append-session.ts'
export type { Basin } from './api/basin.ts'
export type { Headwater } from './api/headwater.ts'
export type { JsonRecord } from './api/json-codec.ts'
export type { JsonStream } from './api/json-stream.ts'
export type { JsonAppendSession, JsonProducer } from './api/json-writers.ts'
export type { Producer, ProducerOptions, RecordAck, RecordTicket } from './api/producer.ts'
export type { ReadOptions, ReadSession, ReadSessionEvent } from './api/read-session.ts'
/** @internal */
export type { ReadEvent, RecordCursor } from './api/record-cursor.ts'
export type { Stream } from './api/stream.ts'
/** @internal */
export type { Resource } from './core/permission.ts'
export { type Engine, open } from './engine/api/engine.ts'
/** @internal */
export type { EngineBasin } from './engine/api/engine-basin.ts'
export type { EngineStats } from './engine/api/engine-services.ts'
/** @internal */
export type { EngineStream } from './engine/api/engine-stream.ts'
export type { CipherSuite } from './engine/encryption/cipher-suite.ts'
/** @internal */
export type { ReadCursor } from './engine/log/follow.ts'
export type { OpenOptions } from './engine/options.ts'
/** @internal */
export type { StreamDescription } from './engine/service/read-service.ts'
export {
  type AccessScope,
  type AccessTokenInfo,
  type AccessTokenInput,
  OPERATIONS,
  type Operation,
} from './model/access.ts'
export type { ProducerBatch, RecordInput } from './model/append-input.ts'
export type {
  BasinConfig,
  BasinConfigInput,
  BasinReconfiguration,
  Cipher,
  RetentionPolicy,
  StreamConfig,
  StreamConfigInput,
  StreamReconfiguration,
} from './model/config.ts'
export type { EncryptionKey } from './model/encryption-key.ts'
export { type ErrorCode, HeadwaterError } from './model/errors.ts'
export type { AppendAck, BasinInfo, ListQuery, Page, Provisioned, StreamInfo } from './model/info.ts'
export type { Metric, MetricsQuery } from './model/metrics.ts'
export type { StreamPosition, StreamTail } from './model/position.ts'
export type { ReadQuery } from './model/read-query.ts'
export {
  type Command,
  closeRecord,
  fenceRecord,
  type Header,
  type RecordFormat,
  type SequencedRecord,
  type TextRecord,
  trimRecord,
} from './model/record.ts'
export { type Clock, systemClock } from './runtime/clock.ts'
export type { Storage } from './storage/contract.ts'
export type { ReadBatch } from './storage/record-batch.ts'
