import { type VerifyReport, verifyLog } from '../../../adapters/storage/log/verify.ts'
import { DirectoryMedium } from '../../../adapters/storage/media/directory.ts'
import type { Files } from '../../../adapters/storage/media/files.ts'

/** Verifies files that nothing writes to. */
export function verifyDisk(files: Files): Promise<VerifyReport> {
  return verifyLog(new DirectoryMedium(files))
}
