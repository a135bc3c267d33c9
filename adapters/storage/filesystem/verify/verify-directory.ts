import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { systemClock } from '../../../../src/engine/system-clock.ts'
import type { Clock } from '../../../../src/storage/clock.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { failureOf } from '../failures.ts'
import { isTemporaryName, parseFileName } from '../file-header.ts'
import { isLeftName, isOwnerName } from '../owner-file.ts'
import { holdDirectory } from './held-directory.ts'
import { EMPTY_REPORT, type VerifyProgress, type VerifyReport } from './report.ts'
import { verifyFiles } from './verify-files.ts'

export interface VerifyOptions {
  /** Called often, with how far it has come. */
  readonly onProgress?: ((progress: VerifyProgress) => void) | undefined
  /** Stops it: the directory is given up, and the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** What the time comes from that is noted of the owner. Default: the system's clock. */
  readonly clock?: Clock | undefined
}

/**
 * Reads everything that a directory of {@link filesystem} holds and checks every checksum and invariant (docs/storage-format.md "Verifying"), as far
 * as that goes without the keys of encrypted streams. Goes on behind what is damaged, so that one report shows how much is.
 *
 * Nobody else may have the directory open: this call is its owner until it settles or, where it cannot write, looks before and after that there is
 * none. It changes nothing that is stored, and removes nothing that is left over but what says that a crashed process was the owner.
 * Memory used: that of an opening, a few MiB, and up to 150 bytes for each document and each log.
 *
 * A directory that is empty, or was only ever opened, has a report of no files: it has no problem, and may be another directory than the one that was meant.
 *
 * Rejects with `StorageFailure`: of kind `blocked` when the directory is open elsewhere, `io` when there is none, when it holds only what is not of the
 * storage, or when it cannot be listed. Whatever is wrong with its files is in the report.
 */
export async function verifyDirectory(
  directory: string,
  { onProgress, signal, clock = systemClock }: VerifyOptions = {},
): Promise<VerifyReport> {
  signal?.throwIfAborted()
  const path = resolve(directory)
  // Owning a directory writes to it: not before it is certain that it is one of the storage.
  if (await isEmpty(path)) return EMPTY_REPORT
  const held = await holdDirectory(path, clock)
  try {
    const report = await verifyFiles(held.files, { onProgress, signal })
    await held.confirm()
    return report
  } finally {
    await held.release()
  }
}

async function isEmpty(path: string): Promise<boolean> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw refusal(`there is no directory ${path}`)
    if (error.code === 'ENOTDIR') throw refusal(`${path} is no directory`)
    throw failureOf(error, true)
  })
  if (names.length > 0 && !names.some(isOfStorage)) {
    throw refusal(`${path} holds nothing that this storage wrote`)
  }
  return names.length === 0
}

function isOfStorage(name: string): boolean {
  return parseFileName(name) !== undefined || isTemporaryName(name) || isOwnerName(name) || isLeftName(name)
}

function refusal(message: string): StorageFailure {
  return new StorageFailure('io', message, { nothingWritten: true })
}
