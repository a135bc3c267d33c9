export type { MirrorGap, MirrorState, StoppedMirror, StopReason } from '../../src/sync/mirror-state.ts'
export type { Confirmation } from '../../src/sync/outbox-log.ts'
export type { FailedAppend, OutboxStatus } from '../../src/sync/outbox-status.ts'
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
export type { EarlierRecords, FetchEarlierOptions, RestartOptions } from './earlier-history.ts'
export {
  Mirror,
  type MirrorOptions,
  type MirrorReadOptions,
  type MirrorStart,
  mirror,
} from './mirror.ts'
export { Outbox, type OutboxAppend, outbox } from './outbox.ts'
export type { OutboxOptions } from './outbox-options.ts'
export type { BasinStream } from './stream-list.ts'
export { type SyncedStreamOptions, syncedStream } from './synced.ts'
export { type SyncedBasin, syncedBasin } from './synced-basin-on-demand.ts'
export type { BasinStreamOptions, SyncedBasinOptions } from './synced-basin-options.ts'
export type { SyncedRead } from './synced-read.ts'
export type { SyncedReader } from './synced-reader.ts'
export type { SyncedJsonOptions, SyncedJsonStream, SyncedStream } from './synced-stream.ts'
