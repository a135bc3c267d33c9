import type { Storage } from '../../../src/storage/contract.ts'
import { MemoryData } from './data.ts'
import { MemorySession } from './session.ts'

/**
 * A storage that keeps everything in this object: for tests, caches, and pages that may forget.
 *
 * Several engines may open one `memory()` at once; each sees what the others do. The data lives as long as the object:
 * an engine that is closed and opened again on the same object finds what it left, as after a restart.
 *
 * Memory used: what is stored, about 300 bytes more for each append, and the keys of the catalog twice.
 */
export function memory(): Storage {
  const data = new MemoryData()
  return {
    manifest: { name: 'memory', durability: 'none', shared: true, notifications: 'reliable' },
    async open({ onLogChanged }) {
      return new MemorySession(data, onLogChanged)
    },
  }
}
