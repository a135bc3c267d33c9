'use client'

export type { ChangingSource, RecordSource, StreamView, UseStreamOptions } from './use-stream.ts'
export { useStream } from './use-stream.ts'
export { type StateSource, useSyncState } from './use-sync-state.ts'
