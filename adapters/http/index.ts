export { setConnection } from './connection.ts'
export { serveFetchEvents } from './fetch-events.ts'
export { createHandler } from './handler.ts'
export type { HandlerOptions } from './options.ts'
