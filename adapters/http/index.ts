/**
 * The HTTP handler for runtimes and frameworks with `Request` and `Response`.
 *
 * @packageDocumentation
 */

export { openOnce } from './core.ts'
export type { RequestExchange } from './exchange.ts'
export { createHandler } from './fetch-bridge.ts'
export type { HandlerLimits, HandlerOptions, HtmlPage } from './options.ts'
export { serveFetchEvents } from './service-worker.ts'
