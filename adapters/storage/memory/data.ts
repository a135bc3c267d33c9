import type { CatalogChange } from '../../../src/storage/contract.ts'
import { Catalog } from './catalog.ts'
import { Logs } from './logs.ts'
import type { MemorySession } from './session.ts'

/** What one `memory()` holds, whoever has it open. */
export class MemoryData {
  readonly catalog = new Catalog()
  readonly logs = new Logs()
  readonly sessions = new Set<MemorySession>()

  /** Applies the changes in their order. When one fails, those before it are taken back. */
  commit(changes: readonly CatalogChange[]): void {
    const undo: (() => void)[] = []
    try {
      for (const change of changes) undo.push(this.#apply(change))
    } catch (error) {
      for (const takeBack of undo.reverse()) takeBack()
      throw error
    }
  }

  tellOthers(author: MemorySession, logId: string): void {
    for (const session of this.sessions) if (session !== author) session.logChanged(logId)
  }

  #apply(change: CatalogChange): () => void {
    switch (change.kind) {
      case 'put':
        return this.catalog.put(change.collection, change.key, change.value, change.expect)
      case 'delete':
        return this.catalog.delete(change.collection, change.key, change.expect)
      case 'create-log':
        return this.logs.create(change.logId, change.epoch, change.createdAt, change.start)
      case 'set-epoch':
        return this.logs.setEpoch(change.logId, change.epoch)
      case 'delete-log':
        return this.logs.delete(change.logId, change.expectSeqNum)
      case 'check':
        this.catalog.check(change.collection, change.key, change.expect)
        return () => {}
    }
  }
}
