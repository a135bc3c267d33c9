import { resolve } from 'node:path'
import type { Storage } from '../../../src/storage/contract.ts'
import { openDirectory } from './open-directory.ts'

export type { VerifyNote, VerifyProblem, VerifyProgress, VerifyReport } from './verify/report.ts'
export { type VerifyOptions, verifyDirectory } from './verify/verify-directory.ts'

export interface FilesystemOptions {
  /**
   * What an append has survived when it resolves. `sync`, the default: a power loss; everything that waits is written and synced
   * together. `os`: a crash of the process, not one of the machine; nothing waits for the disk.
   */
  readonly durability?: 'sync' | 'os'
}

/**
 * A storage in a directory of its own, made when it is missing: for Node, Bun and Deno. docs/storage-format.md has its files.
 *
 * One process has the directory open at a time; for others, and for a second opening in the same one, opening rejects with
 * `StorageFailure` of kind `blocked`, which names the holder. What a crashed process left is taken over.
 *
 * Memory used: the documents, about 1 KiB for each stream, and about 200 bytes for each place where a stream has records: one for
 * each append of 128 KiB and more, one for each MiB of others at least, and a few.
 */
export function filesystem(directory: string, options: FilesystemOptions = {}): Storage {
  const { durability = 'sync' } = options
  const path = resolve(directory)
  return {
    manifest: {
      name: 'filesystem',
      durability: durability === 'sync' ? 'power-loss' : 'process-crash',
      shared: false,
      notifications: 'none',
    },
    open: ({ clock }) => openDirectory(path, { durability }, clock),
  }
}
