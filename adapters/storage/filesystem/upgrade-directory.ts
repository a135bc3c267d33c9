import { resolve } from 'node:path'
import { assertOptions } from '../../../src/model/validation.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { fileFailure } from './files/errors.ts'
import {
  assertReadable,
  distinctVersions,
  FORMAT_VERSION,
  formatVersions,
  parseFileName,
  temporaryName,
  upgradeHeader,
} from './files/file-header.ts'
import type { File, Files } from './files/files.ts'
import { lockDirectory } from './lock/directory-lock.ts'
import { openStorage } from './shared-storage.ts'
import { writeCheckpoint } from './state/checkpoint.ts'
import { openCheckpoint } from './state/checkpoint-file.ts'
import type { ScanOptions } from './verify/scan.ts'
import { DIRECTORY_OPTIONS, type DirectoryOptions, hasNoFiles } from './verify/verify-directory.ts'

const PIECE_BYTES = 1_048_576

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

/** The outcome of {@link upgradeFiles}. */
interface UpgradedFiles {
  /** The format version that each file had. */
  readonly versions: ReadonlyMap<string, number>
  /** How many files were rewritten. */
  readonly rewritten: number
}

/**
 * Gives the present format version to all files, which nothing else may have open. For journals and segments,
 * each version has only added to the one before, so that it is enough to change the headers. A checkpoint is
 * written again, with its index.
 */
async function upgradeFiles(files: Files, { onProgress, signal }: ScanOptions): Promise<UpgradedFiles> {
  const versions = await formatVersions(files, await dataFiles(files))
  for (const [name, version] of versions) assertReadable(name, version)
  await completeRecovery(files)
  const outdated: { readonly name: string; readonly bytes: number }[] = []
  for (const [name, version] of await formatVersions(files, await dataFiles(files))) {
    if (version < FORMAT_VERSION) outdated.push({ name, bytes: await sizeOf(files, name) })
  }
  const total = outdated.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  for (const { name, bytes } of outdated) {
    const onCopied = (copied: number): void => {
      signal?.throwIfAborted()
      onProgress?.({ done: done + copied, total, file: name })
    }
    const { kind, number } = parseFileName(name)!
    onCopied(0)
    if (kind === 'checkpoint') await rewriteCheckpoint(files, number)
    else await rewrite(files, name, onCopied)
    onCopied(bytes)
    done += bytes
  }
  if (outdated.length > 0) await files.syncDirectory()
  return { versions, rewritten: outdated.length }
}

async function dataFiles(files: Files): Promise<string[]> {
  return (await files.list()).filter((name) => parseFileName(name) !== undefined).sort()
}

/** Opens the storage, which removes what a crash left, and reports damage that matters. */
async function completeRecovery(files: Files): Promise<void> {
  const storage = await openStorage(files, { durability: 'power-loss' }, async () => {})
  await storage.close()
}

async function sizeOf(files: Files, name: string): Promise<number> {
  const file = await files.open(name, 'read')
  try {
    return await file.size()
  } finally {
    await file.close()
  }
}

/** Replaces a checkpoint in one step. */
async function rewriteCheckpoint(files: Files, number: number): Promise<void> {
  const { state, close } = await openCheckpoint(files, number)
  try {
    const { catalog, logs, nextLog, nextVersion } = state
    const segments = state.segments.values()
    const content = {
      collections: catalog.snapshot(),
      logs: logs.snapshot([]),
      segments,
      nextLog,
      nextVersion,
    }
    await writeCheckpoint(files, { journal: number, ...content }, () => false)
  } finally {
    await close()
  }
}

/** Replaces a file by a copy with another header, in one step. An opening removes an unfinished copy. */
async function rewrite(files: Files, name: string, onCopied: (bytes: number) => void): Promise<void> {
  const copy = temporaryName(name)
  try {
    const source = await files.open(name, 'read')
    try {
      const target = await files.open(copy, 'create')
      try {
        await copyWithHeader(source, target, name, onCopied)
        await target.datasync()
      } finally {
        await target.close()
      }
    } finally {
      await source.close()
    }
    await files.rename(copy, name)
  } catch (error) {
    await files.unlink(copy).catch(() => {})
    throw error
  }
}

async function copyWithHeader(
  source: File,
  target: File,
  name: string,
  onCopied: (bytes: number) => void,
): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES)
  let position = 0
  while (true) {
    onCopied(position)
    const piece = buffer.subarray(0, await source.read(buffer, position))
    if (position === 0) upgradeHeader(piece, name)
    if (piece.length === 0) return
    await target.write(piece, position)
    position += piece.length
  }
}
