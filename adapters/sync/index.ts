/**
 * Streams that several devices read and append to offline, synced through a server.
 *
 * @packageDocumentation
 */

export type { MirrorGap, MirrorStart, MirrorState, StopReason } from '../../src/sync/mirror.ts'
export type { FailedAppend, OutboxStatus } from '../../src/sync/outbox.ts'
export type { ListChange, RecordView } from '../../src/sync/record-view.ts'
export type {
  BytesContent,
  ConfirmedRecord,
  JsonContent,
  PendingRecord,
  RecordOrigin,
  SyncedRecord,
  TextContent,
} from '../../src/sync/synced-record.ts'
export { Mirror, type MirrorOptions, mirror, type RestartOptions } from './mirror.ts'
export { Outbox, type OutboxAppend, type OutboxOptions, outbox } from './outbox.ts'
export {
  type BasinStream,
  type BasinStreamOptions,
  type SyncedBasin,
  type SyncedBasinOptions,
  syncedBasin,
} from './synced-basin.ts'
export type { SyncedRead, SyncedReader } from './synced-reader.ts'
export {
  type SyncedJsonOptions,
  type SyncedJsonStream,
  type SyncedStream,
  type SyncedStreamOptions,
  syncedStream,
} from './synced-stream.ts'
