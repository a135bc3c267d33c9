import type { Storage } from '../../../src/storage/contract.ts'
import { memoryStorage } from './memory-storage.ts'

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
 * Memory: what is stored, about 300 bytes per append, and 2 % of large appends for finding single records.
 * Each stream that holds up to 16 KiB takes about 200 bytes, and 56 per append, if there are thousands.
 */
export function memory(): Storage {
  return memoryStorage()
}
