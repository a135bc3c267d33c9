import { readdir } from 'node:fs/promises'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { fileFailure } from './files/errors.ts'
import { isTemporaryName, parseFileName } from './files/file-header.ts'
import { RESERVE_NAME } from './files/reserve.ts'
import { isLeftoverName, isOwnerName } from './lock/owner-file.ts'

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
