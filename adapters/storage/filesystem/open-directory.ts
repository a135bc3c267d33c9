import { mkdir, realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import { toStorageFailure } from './files/errors.ts'
import { syncDirectory } from './files/node-files.ts'
import type { OpenOptions } from './open-files.ts'
import { sharedDirectory } from './shared-directory.ts'

/** Creates the directory for its owner only if needed. Opens the storage in it, or joins its engines. */
export async function openDirectory(
  path: string,
  options: OpenOptions,
  context: StorageContext,
): Promise<StorageSession> {
  try {
    await makeDirectory(path)
    return await sharedDirectory(await realpath(path)).open(options, context)
  } catch (error) {
    throw toStorageFailure(error, true)
  }
}

async function makeDirectory(path: string): Promise<void> {
  const first = (await mkdir(path, { recursive: true, mode: 0o700 })) ?? path
  // A new directory is durable once its parent is synced. An earlier process may have crashed before it did
  // that.
  for (let made = path; made !== dirname(made); made = dirname(made)) {
    await syncDirectory(dirname(made)).catch(ignoreForeign)
    if (made === first) return
  }
}

/** This process created nothing in a directory that it cannot read. */
function ignoreForeign(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error
}
