import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from '../../../src/storage/clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { failureOf } from './failures.ts'
import { syncDirectory } from './node-files.ts'
import { type OpenOptions, openFiles } from './open-files.ts'
import { ownDirectory } from './owner.ts'

/** Opens a directory that nobody else has open, made when it is missing. */
export async function openDirectory(
  path: string,
  options: OpenOptions,
  clock: Clock,
): Promise<StorageSession> {
  try {
    await makeDirectory(path)
    const owned = await ownDirectory(path, clock)
    try {
      return await openFiles(owned.files, options, () => owned.release())
    } catch (error) {
      await owned.release()
      throw error
    }
  } catch (error) {
    throw failureOf(error, true)
  }
}

async function makeDirectory(path: string): Promise<void> {
  const first = (await mkdir(path, { recursive: true })) ?? path
  // What was made is durable when the directory around it is. Who made it before may have crashed just then.
  for (let made = path; made !== dirname(made); made = dirname(made)) {
    await syncDirectory(dirname(made)).catch(ignoreForeign)
    if (made === first) return
  }
}

/** What this process may not read, it did not make anything in either. */
function ignoreForeign(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error
}
