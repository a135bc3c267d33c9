import { type LogSession, LogStorage } from '../../../adapters/storage/log/storage.ts'
import type { LogStorageOptions } from '../../../adapters/storage/log/store.ts'
import { directoryMedium } from '../../../adapters/storage/media/directory.ts'
import type { Files } from '../../../adapters/storage/media/files.ts'

/** Opens the storage in these files for a single engine. The reserve is small, as the disk is in memory. */
export async function openFiles(files: Files, options: LogStorageOptions): Promise<LogSession> {
  const medium = await directoryMedium(files)
  const storage = await LogStorage.open(medium, { reserveBytes: 4096, ...options }, async () => {})
  return storage.join({ onLogChanged: () => {} })!
}
