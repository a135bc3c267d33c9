import { HeadwaterError } from '../model/errors.ts'

const MISSING: readonly string[] = ['stream_not_found', 'basin_not_found', 'basin_deletion_pending']

/**
 * Resolves to whether what the call asks about exists. A basin that is being deleted counts as missing, and
 * so do its streams.
 */
export async function existsBy(call: Promise<unknown>): Promise<boolean> {
  try {
    await call
    return true
  } catch (error) {
    if (HeadwaterError.is(error) && MISSING.includes(error.code)) return false
    throw error
  }
}
