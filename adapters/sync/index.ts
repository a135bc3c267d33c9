export type { ChangeSource, PendingRecord, StreamChange } from '../../src/sync/changes.ts'
export type { FoldedRecord } from '../../src/sync/fold-state.ts'
export type { MirrorGap, MirrorState, StoppedMirror, StopReason } from '../../src/sync/mirror-state.ts'
export type { EarlierRecords } from './earlier-history.ts'
export { Fold, fold } from './fold.ts'
export type { FoldOptions } from './fold-options.ts'
export type { FoldSource } from './fold-source.ts'
export {
  type FetchEarlierOptions,
  Mirror,
  type MirrorOptions,
  type MirrorReadOptions,
  type MirrorStart,
  mirror,
  type RestartOptions,
} from './mirror.ts'
export { syncedStream } from './synced.ts'
export type { SyncedStream } from './synced-stream.ts'
