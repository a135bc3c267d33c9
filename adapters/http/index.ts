export type { RequestExchange } from './exchange.ts'
export { createHandler } from './fetch-bridge.ts'
export type { HandlerLimits, HandlerOptions, HtmlPage } from './options.ts'
export { serveFetchEvents } from './service-worker.ts'
