export type { ChangeSource, PendingRecord, StreamChange } from '../../src/sync/changes.ts'
export type { MirrorGap, MirrorState, StoppedMirror, StopReason } from '../../src/sync/mirror-state.ts'
export type { EarlierRecords } from './earlier-history.ts'
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
