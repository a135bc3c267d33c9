import { Late } from '../../../src/engine/late.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'

const rest = new Late('part of the IndexedDB storage', () => import('./rest.ts'))

/** Rejects with `StorageFailure` when the code cannot be had; the next call tries again. */
export async function loadRest(): Promise<typeof import('./rest.ts')> {
  try {
    return await rest.load()
  } catch (cause) {
    throw new StorageFailure('io', 'part of its code could not be loaded', { nothingWritten: true, cause })
  }
}
