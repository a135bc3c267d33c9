'use client'

export type { RecordSource, StreamView, UseStreamOptions } from './stream-store.ts'
export { useStream } from './use-stream.ts'
