import { Late } from '../../../src/engine/late.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'

/** Loaded by `loadRest`. */
export const rest = new Late('part of the IndexedDB storage', () => import('./rest.ts'))

/**
 * Rejects with `StorageFailure` when the code cannot be had; the next call tries again. Rejects with the reason of a signal that does not wait for it
 * any longer.
 */
export async function loadRest(ending?: AbortSignal): Promise<typeof import('./rest.ts')> {
  try {
    return await rest.load(ending)
  } catch (cause) {
    if (ending?.aborted) throw ending.reason
    throw new StorageFailure('io', 'part of its code could not be loaded', { nothingWritten: true, cause })
  }
}
