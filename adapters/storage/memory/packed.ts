import type { MemoryCatalog } from './catalog.ts'
import type { MemoryLogs } from './logs.ts'
import { NumberedDeadlines } from './numbered-deadlines.ts'
import { PackedDocuments } from './packed-documents.ts'
import { PackedLogMap } from './packed-logs.ts'
import { SlabBlocks, Slabs } from './slab-blocks.ts'

/** Packs all documents, and idle logs if more than `unpackedMax` have objects, from now on. */
export function pack(catalog: MemoryCatalog, logs: MemoryLogs, unpackedMax: number): void {
  catalog.newStore = () => new PackedDocuments()
  for (const [collection, before] of catalog.stores) {
    const store = catalog.newStore()
    for (const key of before.keysFrom('')) store.set(key, before.get(key)!)
    catalog.stores.set(collection, store)
  }
  const map = new PackedLogMap((id, head) => logs.newLog(id, head), unpackedMax)
  const expiries = new NumberedDeadlines(map)
  const trims = new NumberedDeadlines(map)
  const unpacked = logs.logs.values()
  const slabs = new Slabs()
  logs.logs = map
  logs.expiries = expiries
  logs.trims = trims
  logs.smallBlocks = () => new SlabBlocks(slabs)
  for (const log of unpacked) {
    map.set(log.id, log)
    expiries.set(log, log.expiryDue)
    trims.set(log, log.trimDue)
  }
}
