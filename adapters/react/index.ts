'use client'

export type {
  ChangingSource,
  RecordSource,
  StateSource,
  StreamView,
  UseStreamOptions,
} from '../stream-view/index.ts'
export { useStream } from './use-stream.ts'
export { useSyncState } from './use-sync-state.ts'
