import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { assertOptions, assertSignal, hasMethod, type MembersOf } from '../../../../src/model/validation.ts'
import { type Clock, systemClock } from '../../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { fileFailure } from '../files/errors.ts'
import { isTemporaryName, parseFileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import { nodeFiles } from '../files/node-files.ts'
import { RESERVE_NAME } from '../files/reserve.ts'
import { assertUnlocked, lockDirectory } from '../lock/directory-lock.ts'
import { isLeftoverName, isOwnerName } from '../lock/owner.ts'
import { type DirectoryProgress, EMPTY_REPORT, type VerifyReport } from './report.ts'
import { verifyFiles } from './verify-files.ts'

/**
 * Options of {@link verifyDirectory} and `upgradeDirectory`.
 *
 * ```ts
 * const stop = new AbortController()
 * await verifyDirectory('./data', {
 *   onProgress: ({ done, total, file }) => console.log(`${file}: ${Math.round((100 * done) / total)} %`),
 *   signal: stop.signal,
 *   clock: systemClock,
 * })
 * ```
 */
export interface DirectoryOptions {
  /** Receives the progress, often during the work. */
  readonly onProgress?: ((progress: DirectoryProgress) => void) | undefined
  /** Aborts the work: the lock is released, and the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Source of the time in the owner file. The system clock by default. */
  readonly clock?: Clock | undefined
}

/** The members of {@link DirectoryOptions}. */
export const DIRECTORY_OPTIONS: MembersOf<DirectoryOptions> = {
  onProgress: 'function',
  signal: assertSignal,
  clock: hasMethod('now', 'a clock'),
}

/**
 * Reads all files of a {@link filesystem} directory and checks every checksum and invariant
 * (docs/storage-format.md "Verifying") that can be checked without the keys of encrypted streams. Continues
 * after damage, so that one report shows all of it.
 *
 * The directory must not be open elsewhere. This call locks it until it settles; if the directory is
 * read-only, it checks before and after that no other process has locked it. It modifies nothing that is
 * stored, and removes no leftovers but a stale lock. Memory: that of an opening, a few MiB, and up to 150
 * bytes per document and per log.
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
  const { onProgress, signal, clock = systemClock } = options
  signal?.throwIfAborted()
  const path = resolve(directory)
  // Locking writes to the directory: only once it is certain that it belongs to the storage.
  if (await hasNoFiles(path)) return EMPTY_REPORT
  const held = await openForVerify(path, clock)
  try {
    const report = await verifyFiles(held.files, { onProgress, signal })
    await held.confirm()
    return report
  } finally {
    await held.release()
  }
}

/** A directory that does not change while it is verified. */
interface VerifiableDirectory {
  readonly files: Files
  /**
   * Called after reading: rejects with `StorageFailure` of kind `blocked` if another process has locked the
   * directory meanwhile.
   */
  confirm(): Promise<void>
  release(): Promise<void>
}

/**
 * Errors that prevent creating a file: copies and snapshots may be mounted read-only, and a full disk can be
 * verified too.
 */
const UNWRITABLE = new Set(['EROFS', 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT'])

/**
 * Locks the directory or, if it is read-only, checks before and after the verification that no other process
 * has. Rejects with `StorageFailure`.
 */
async function openForVerify(path: string, clock: Clock): Promise<VerifiableDirectory> {
  try {
    const { files, release } = await lockDirectory(path, clock)
    return { files, confirm: async () => {}, release }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined || !UNWRITABLE.has(code)) throw fileFailure(error, true)
  }
  const confirm = async (): Promise<void> => {
    await assertUnlocked(path).catch((error) => {
      throw fileFailure(error, true)
    })
  }
  await confirm()
  return { files: nodeFiles(path), confirm, release: async () => {} }
}

/**
 * Returns whether a directory is empty. Rejects with `StorageFailure` if it does not exist, cannot be listed
 * or contains only files that are not of this storage. Modifies nothing, so that it can be called before the
 * directory is locked.
 */
export async function hasNoFiles(path: string): Promise<boolean> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw refusal(`directory ${path} does not exist`)
    if (error.code === 'ENOTDIR') throw refusal(`${path} is not a directory`)
    throw fileFailure(error, true)
  })
  if (names.length > 0 && !names.some(isOfStorage)) {
    throw refusal(`${path} contains no files of this storage`)
  }
  return names.length === 0
}

function isOfStorage(name: string): boolean {
  return (
    parseFileName(name) !== undefined ||
    isTemporaryName(name) ||
    isOwnerName(name) ||
    isLeftoverName(name) ||
    name === RESERVE_NAME
  )
}

function refusal(message: string): StorageFailure {
  return new StorageFailure('io', message, { nothingWritten: true })
}
