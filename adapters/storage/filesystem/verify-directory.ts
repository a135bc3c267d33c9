import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { assertOptions, assertSignal, type MembersOf } from '../../../src/model/validation.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type DirectoryOptions, type VerifyReport, verifyLog } from '../log/verify.ts'
import { DirectoryMedium, isOfMedium } from '../media/directory.ts'
import { nodeFiles } from '../media/files.ts'
import { assertUnlocked, type DirectoryLock, isLockName, lockDirectory } from '../media/lock.ts'
import { mediumFailure } from '../media/medium.ts'

/** The members of {@link DirectoryOptions}. */
const DIRECTORY_OPTIONS: MembersOf<DirectoryOptions> = {
  onProgress: 'function',
  signal: assertSignal,
}

/**
 * Reads all files of a {@link filesystem} directory and checks every checksum and invariant
 * (docs/storage-format.md "Verifying") that can be checked without the keys of encrypted streams. Continues
 * after damage of segments, so that one report shows all of it.
 *
 * The directory must not be open elsewhere. This call locks it until it settles; if the directory is
 * read-only, it checks before and after that no other process has locked it. It modifies nothing that is
 * stored, and removes no leftovers but a stale lock. Memory: that of an opening, and a few MiB.
 *
 * An empty directory, or one that was only ever opened, has a report without files and without problems. It
 * may not be the directory that was meant.
 *
 * Rejects with `StorageFailure` of kind
 * - `blocked` if the directory is open elsewhere;
 * - `io` if it does not exist, contains only foreign files, or cannot be listed.
 *
 * Everything that is wrong with its files is in the report.
 */
export async function verifyDirectory(
  directory: string,
  options: DirectoryOptions = {},
): Promise<VerifyReport> {
  assertOptions(options, DIRECTORY_OPTIONS)
  const { onProgress, signal } = options
  signal?.throwIfAborted()
  const path = resolve(directory)
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw refusal(`directory ${path} does not exist`)
    if (error.code === 'ENOTDIR') throw refusal(`${path} is not a directory`)
    throw mediumFailure(error, true)
  })
  // Locking writes to the directory: only once it is certain that it belongs to the storage.
  if (names.length > 0 && !names.some((name) => isOfMedium(name) || isLockName(name))) {
    throw refusal(`${path} contains no files of this storage`)
  }
  const lock = names.length === 0 ? undefined : await lockIfWritable(path)
  const medium = new DirectoryMedium(nodeFiles(path))
  try {
    if (lock === undefined) await assertUnlocked(path)
    const report = await verifyLog(medium, { onProgress, signal })
    if (lock === undefined) await assertUnlocked(path)
    return report
  } finally {
    await medium.close()
    await lock?.release()
  }
}

/**
 * Errors that prevent creating a file: copies and snapshots may be mounted read-only, and a full disk can be
 * verified too.
 */
const UNWRITABLE = new Set(['EROFS', 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT'])

/** Locks the directory. Resolves to undefined if it is read-only. */
function lockIfWritable(path: string): Promise<DirectoryLock | undefined> {
  return lockDirectory(path).catch((error: NodeJS.ErrnoException) => {
    if (UNWRITABLE.has(error.code ?? '')) return undefined
    throw mediumFailure(error, true)
  })
}

function refusal(message: string): StorageFailure {
  return new StorageFailure('io', message, { nothingWritten: true })
}
