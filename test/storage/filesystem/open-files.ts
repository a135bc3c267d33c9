import type { Files } from '../../../adapters/storage/filesystem/files/files.ts'
import {
  type OpenContext,
  type OpenFilesOptions,
  openStorage,
} from '../../../adapters/storage/filesystem/shared-storage.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'

/** Opens the storage in these files for a single engine. The reserve is small, as the disk is in memory. */
export async function openFiles(
  files: Files,
  options: OpenFilesOptions,
  release: () => Promise<void> = async () => {},
  context: OpenContext = {},
): Promise<StorageSession> {
  return (await openStorage(files, { reserveBytes: 4096, ...options }, release, context)).open(() => {})!
}
