/**
 * A storage in memory, for tests and caches.
 *
 * @packageDocumentation
 */

import type { Storage } from '../../../src/storage/contract.ts'
import { MemoryData, MemorySession } from './session.ts'

/**
 * A storage that keeps everything in the returned object: for tests, caches, and pages that may lose their
 * data.
 *
 * ```ts
 * const hw = await open({ storage: memory() })
 * ```
 *
 * Several engines may have one `memory()` open at the same time, and each sees the changes of the others. The
 * data lives as long as the object: an engine that opens it again finds the same data, as after a restart.
 *
 * Memory: what is stored, about 300 bytes per append, and about 1.5 KiB per stream. It is made for up to
 * 100,000 streams.
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
