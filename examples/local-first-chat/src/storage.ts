import { indexedDb } from 'headwater/indexeddb'

/** One database, which each tab opens. */
export const storage = indexedDb('synced-chat')
