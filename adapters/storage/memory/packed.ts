import type { MemoryCatalog } from './catalog.ts'
import type { Logs, MemoryLogs } from './logs.ts'
import { PackedDocuments } from './packed-documents.ts'
import { PackedLogs } from './packed-logs.ts'

/** Packs all documents from now on. Returns what packs the logs. */
export function pack(catalog: MemoryCatalog, logs: MemoryLogs): Logs {
  catalog.newStore = () => new PackedDocuments()
  for (const [collection, before] of catalog.stores) {
    const store = catalog.newStore()
    for (const key of before.keysFrom('')) store.set(key, before.get(key)!)
    catalog.stores.set(collection, store)
  }
  return new PackedLogs(logs)
}
