import { resolve } from 'node:path'
import { assertOptions } from '../../../../src/model/validation.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'
import { hasNoFiles } from '../directory-contents.ts'
import { fileFailure } from '../files/errors.ts'
import { FORMAT_VERSION } from '../files/file-header.ts'
import { distinctVersions } from '../files/format-versions.ts'
import { lockDirectory } from '../lock/directory-lock.ts'
import { DIRECTORY_OPTIONS, type DirectoryOptions } from '../verify/verify-directory.ts'
import { upgradeFiles } from './upgrade-files.ts'

/** The result of {@link upgradeDirectory}. */
export interface UpgradeReport {
  /** The format version that the files have now: that of this release. */
  readonly formatVersion: number
  /** The format versions that they had before, ascending. Empty if the directory contains no data. */
  readonly formatVersionsBefore: readonly number[]
  /** How many files were rewritten. */
  readonly files: number
}

/**
 * Rewrites the files of a {@link filesystem} directory that an earlier release has written, so that all have
 * the format version of this release. Opening a directory needs no upgrade: it reads the earlier formats that
 * docs/versions.md names, and old files disappear as they are compacted. A later release may read fewer.
 *
 * ```ts
 * const { formatVersion, formatVersionsBefore, files } = await upgradeDirectory('./data')
 * console.log(`${files} files of format ${formatVersionsBefore} have format ${formatVersion} now`)
 * ```
 *
 * The directory must not be open elsewhere. This call opens it, which completes what a crash left, and copies
 * one file at a time: the disk needs space for the largest of them. Each file is replaced in one step. If the
 * call fails or is aborted, the directory is as sound as before, and some files have the new format. Damage
 * in a file stays as it is: verify the directory first.
 *
 * Rejects with `StorageFailure` of kind
 * - `blocked` if the directory is open elsewhere;
 * - `corrupt` if a file has a format that this release does not read, or a damaged header;
 * - `quota` if no space is left;
 * - `io` if it does not exist, contains only foreign files, or cannot be read or written.
 */
export async function upgradeDirectory(
  directory: string,
  options: DirectoryOptions = {},
): Promise<UpgradeReport> {
  assertOptions(options, DIRECTORY_OPTIONS)
  const { onProgress, signal, clock = systemClock } = options
  signal?.throwIfAborted()
  const path = resolve(directory)
  if (await hasNoFiles(path)) {
    return { formatVersion: FORMAT_VERSION, formatVersionsBefore: [], files: 0 }
  }
  try {
    const { files, release } = await lockDirectory(path, clock)
    try {
      const { versions, rewritten } = await upgradeFiles(files, { onProgress, signal })
      return {
        formatVersion: FORMAT_VERSION,
        formatVersionsBefore: distinctVersions(versions),
        files: rewritten,
      }
    } finally {
      await release()
    }
  } catch (error) {
    if (signal?.aborted) throw error
    throw fileFailure(error, false)
  }
}
