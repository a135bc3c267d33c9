/**
 * The HTTP handler for Node: a server of its own, or a middleware.
 *
 * @packageDocumentation
 */

export type { DurableStreamsMount } from '../durable-streams/options.ts'
export type { ConnectionCounts } from './connections.ts'
export {
  type DrainableNodeHandler,
  type NodeHandler,
  type NodeHandlerLimits,
  type NodeHandlerOptions,
  toNodeHandler,
} from './handler.ts'
export type { TlsIdentity } from './protocols.ts'
export { type ListenOptions, type NodeServer, type ServeOptions, serve } from './serve.ts'
