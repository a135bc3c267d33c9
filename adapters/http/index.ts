export type { AuthorizationTarget } from './authorization.ts'
export { createHandler } from './handler.ts'
export type { HandlerOptions } from './options.ts'
