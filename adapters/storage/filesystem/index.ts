/**
 * A storage in a directory, for servers, desktop apps and command lines.
 *
 * @packageDocumentation
 */

import { resolve } from 'node:path'
import { invalid } from '../../../src/model/errors.ts'
import { assertOptions, type MembersOf, oneOf } from '../../../src/model/validation.ts'
import type { Durability, Storage } from '../../../src/storage/contract.ts'
import { openDirectory } from './shared-directory.ts'

export type {
  DirectoryOptions,
  DirectoryProgress,
  VerifyNote,
  VerifyProblem,
  VerifyReport,
} from '../log/verify.ts'
export { verifyDirectory } from './verify-directory.ts'

/** Options of {@link filesystem}. */
export interface FilesystemOptions {
  /**
   * The failure that an append survives once it resolves. `'power-loss'` (the default): a power loss; all
   * pending appends are written and synced together. `'process-crash'`: a crash of the process, but not of
   * the machine; appends do not wait for the disk.
   */
  readonly durability?: Durability | undefined
}

const FILESYSTEM_OPTIONS: MembersOf<FilesystemOptions> = {
  durability: oneOf(['power-loss', 'process-crash']),
}

/**
 * A storage in its own directory, which is created if it does not exist. For Node, Bun and Deno.
 * docs/storage-format.md describes its files.
 *
 * ```ts
 * const hw = await open({ storage: filesystem('./data') })
 * ```
 *
 * Engines in one thread share the directory, also those of several copies of this module: development servers
 * evaluate modules again. They must ask for the same durability. The last one that closes releases the
 * directory. Another process, or another thread, cannot open it: that rejects with a
 * `StorageFailure` of kind `blocked` that names the owner. A stale lock left by a crash is reclaimed.
 *
 * Memory: what is stored of each stream besides its records, about 700 bytes, up to 2 KiB for each stream
 * that was changed since the last checkpoint, and 100 bytes for each append since then. While journals are
 * rolled, as much as they have: 64 MiB, or a quarter of the state.
 *
 * Throws `invalid` for invalid options.
 */
export function filesystem(directory: string, options: FilesystemOptions = {}): Storage {
  assertOptions(options, FILESYSTEM_OPTIONS)
  if (typeof directory !== 'string' || directory === '')
    throw invalid('filesystem needs the path of a directory', 'directory')
  const { durability = 'power-loss' } = options
  const path = resolve(directory)
  return {
    manifest: {
      name: 'filesystem',
      durability,
      shared: true,
      notifications: 'reliable',
    },
    open: (context) => openDirectory(path, durability, context),
  }
}
