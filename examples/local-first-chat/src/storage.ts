import { indexedDb } from 'headwater/indexeddb'

/** One database for all tabs and the service worker: each opens it for itself. */
export const storage = indexedDb('local-first-chat')
export const BASIN = 'chat'
