export type { ChangeSource, PendingRecord, StreamChange } from '../../src/sync/changes.ts'
export type { MirrorGap, MirrorState, StoppedMirror, StopReason } from '../../src/sync/mirror-state.ts'
export { Mirror, type MirrorOptions, type MirrorStart, mirror, type RestartOptions } from './mirror.ts'
