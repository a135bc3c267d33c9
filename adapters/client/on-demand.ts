import { loaded } from '../../src/runtime/lazy-module.ts'

/** Loads the code of access tokens and usage metrics. Rejects with `unavailable`. */
export const loadAccount = () => loaded('the code of access tokens and metrics', import('./account.ts'))

/** Loads the code that creates, lists and configures basins and streams. Rejects with `unavailable`. */
export const loadControl = () => loaded('the code of basins and configurations', import('./control.ts'))

/** Loads the code of Server-Sent Events. Rejects with `unavailable`. */
export const loadEvents = () => loaded('the code of Server-Sent Events', import('./event-stream.ts'))

/** Loads the code of encryption keys. Rejects with `unavailable`. */
export const loadKeyHeader = () => loaded('the code of encryption keys', import('./key-header.ts'))
