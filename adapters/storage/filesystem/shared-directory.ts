import { mkdir, realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SerialQueue } from '../../../src/runtime/queues.ts'
import type { Durability, StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import { LogStorage } from '../log/storage.ts'
import { directoryMedium } from '../media/directory.ts'
import { nodeFiles, syncDirectory } from '../media/files.ts'
import { lockDirectory } from '../media/lock.ts'
import { mediumFailure } from '../media/medium.ts'

/** Enough for some ten thousand trims, or for a roll that leaves little. */
const RESERVE_BYTES = 4 * 1_048_576

export interface OpenOptions {
  readonly durability: Durability
}

/** Creates the directory for its owner only if needed. Opens the storage in it, or joins its engines. */
export async function openDirectory(
  path: string,
  options: OpenOptions,
  context: StorageContext,
): Promise<StorageSession> {
  try {
    await makeDirectory(path)
    return await sharedDirectory(await realpath(path)).open(options, context)
  } catch (error) {
    throw mediumFailure(error, true)
  }
}

async function makeDirectory(path: string): Promise<void> {
  const first = (await mkdir(path, { recursive: true, mode: 0o700 })) ?? path
  // A new directory is durable once its parent is synced. An earlier process may have crashed before it did
  // that.
  for (let made = path; made !== dirname(made); made = dirname(made)) {
    await syncDirectory(dirname(made)).catch(ignoreForeign)
    if (made === first) return
  }
}

/** This process created nothing in a directory that it cannot read. */
function ignoreForeign(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error
}

/** A directory that the engines of a thread share, also those of other copies of this module. */
interface SharedDirectory {
  /** Opens the storage in the directory, or joins the engines that have it open. */
  open(options: OpenOptions, context: StorageContext): Promise<StorageSession>
}

/** Ends with the version of {@link SharedDirectory} and of what the sessions do: others cannot use them. */
const REGISTRY = Symbol.for('headwater.filesystem.directories.1')

/** The directories that were opened, by real path. A closed one takes a few hundred bytes. */
function registry(): Map<string, SharedDirectory> {
  const scope = globalThis as { [REGISTRY]?: Map<string, SharedDirectory> | undefined }
  scope[REGISTRY] ??= new Map()
  return scope[REGISTRY]
}

/**
 * Returns the directory at this real path. Development servers evaluate modules again, and bundles contain
 * copies of them, so the directories are registered for all copies in this thread.
 */
function sharedDirectory(path: string): SharedDirectory {
  const directories = registry()
  const directory = directories.get(path) ?? new OpenDirectory(path)
  directories.set(path, directory)
  return directory
}

class OpenDirectory implements SharedDirectory {
  readonly #path: string
  readonly #queue = new SerialQueue()
  #opened: LogStorage | undefined

  constructor(path: string) {
    this.#path = path
  }

  open(options: OpenOptions, context: StorageContext): Promise<StorageSession> {
    return this.#queue.run(() => this.#open(options, context))
  }

  async #open({ durability }: OpenOptions, context: StorageContext): Promise<StorageSession> {
    const joined = this.#opened?.join(context)
    if (joined !== undefined) {
      try {
        if (durability === 'power-loss') await this.#opened!.requireSync()
        return joined
      } catch (error) {
        await joined.close()
        throw error
      }
    }
    // A directory that was moved away stays open, and another one may have taken its place.
    await this.#opened?.close().catch(() => {})
    const storage = await this.#lockAndOpen(durability, context)
    this.#opened = storage
    return storage.join(context)!
  }

  async #lockAndOpen(durability: Durability, { clock }: StorageContext): Promise<LogStorage> {
    const lock = await lockDirectory(this.#path)
    try {
      const medium = await directoryMedium(nodeFiles(this.#path))
      const options = { durability, reserveBytes: RESERVE_BYTES, clock }
      const storage: LogStorage = await LogStorage.open(medium, options, async () => {
        await lock.release()
        if (this.#opened === storage) this.#opened = undefined
      })
      return storage
    } catch (error) {
      await lock.release()
      throw error
    }
  }
}
