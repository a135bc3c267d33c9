import { indexedDb } from 'headwater/indexeddb'
import { memory } from 'headwater/memory'

/** By name; each anew. */
export const storages = { memory: () => memory(), indexeddb: () => indexedDb(`app-${crypto.randomUUID()}`) }
