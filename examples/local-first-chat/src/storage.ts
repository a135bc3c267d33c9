import { indexedDb } from 'headwater/indexeddb'

/** One database, which each tab and the service worker open themselves. */
export const storage = indexedDb('local-first-chat')
export const BASIN = 'chat'
