export type { ChangeSource, PendingRecord, StreamChange } from '../../src/sync/changes.ts'
