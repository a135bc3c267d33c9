'use client'

export type { RecordSource, StreamView, UseStreamOptions } from './use-stream.ts'
export { useStream } from './use-stream.ts'
