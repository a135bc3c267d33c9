export type { ConnectionCounts } from './connections.ts'
export type { FetchHandler } from './fetch-handler.ts'
export { type ListenerOptions, toNodeListener } from './listener.ts'
export { type NodeServer, type ServeOptions, serve } from './serve.ts'
