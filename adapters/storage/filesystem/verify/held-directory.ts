import type { Clock } from '../../../../src/storage/clock.ts'
import { failureOf } from '../failures.ts'
import type { Files } from '../files.ts'
import { nodeFiles } from '../node-files.ts'
import { ownDirectory, refuseOwners } from '../owner.ts'

/** A directory that stays as it is while it is read. */
export interface HeldDirectory {
  readonly files: Files
  /** Once all was read: rejects with `StorageFailure` of kind `blocked` when somebody else has the directory after all. */
  confirm(): Promise<void>
  release(): Promise<void>
}

/** What keeps this process from making a file: copies and snapshots are mounted so, and a full disk is to be looked at too. */
const UNWRITABLE = new Set(['EROFS', 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT'])

/** Becomes the owner or, of a directory that cannot be written to, looks before and after the reading that there is none. Rejects with `StorageFailure`. */
export async function holdDirectory(path: string, clock: Clock): Promise<HeldDirectory> {
  try {
    const { files, release } = await ownDirectory(path, clock)
    return { files, confirm: async () => {}, release }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined || !UNWRITABLE.has(code)) throw failureOf(error, true)
  }
  const confirm = async (): Promise<void> => {
    await refuseOwners(path).catch((error) => {
      throw failureOf(error, true)
    })
  }
  await confirm()
  return { files: nodeFiles(path), confirm, release: async () => {} }
}
