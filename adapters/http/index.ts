export { setConnection } from './connection.ts'
export { createHandler } from './handler.ts'
export type { HandlerOptions } from './options.ts'
