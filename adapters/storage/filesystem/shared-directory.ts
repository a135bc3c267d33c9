import { mkdir, realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import type { Durability, StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type LogStorage, openLogStorage } from '../log/storage.ts'
import { directoryMedium } from '../media/directory.ts'
import { type DirectoryLock, lockDirectory } from '../media/lock.ts'
import { mediumFailure } from '../media/medium.ts'
import { nodeFiles, syncDirectory } from '../media/node-files.ts'

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
  /** Version of this interface and of what the sessions do. Copies with another one cannot use them. */
  readonly version: number
  /** Opens the storage in the directory, or joins the engines that have it open. */
  open(options: OpenOptions, context: StorageContext): Promise<StorageSession>
}

const VERSION = 1
const REGISTRY = Symbol.for('headwater.filesystem.directories')

/** The directories that are open or being opened, by real path. */
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
  let directory = directories.get(path)
  if (directory === undefined) {
    directory = new OpenDirectory(path)
    directories.set(path, directory)
  }
  if (directory.version === VERSION) return directory
  const message = `${path} is open in this process by another version of headwater. Restart the process`
  throw new StorageFailure('blocked', message, { nothingWritten: true })
}

class OpenDirectory implements SharedDirectory {
  readonly version = VERSION
  readonly #path: string
  readonly #queue = new SerialQueue()
  #openings = 0
  #opened: LogStorage | undefined

  constructor(path: string) {
    this.#path = path
  }

  async open(options: OpenOptions, context: StorageContext): Promise<StorageSession> {
    this.#openings++
    try {
      return await this.#queue.run(
        async () => (await this.#join(options, context)) ?? this.#open(options, context),
      )
    } finally {
      this.#openings--
      this.#forgetIfUnused()
    }
  }

  /** Resolves to undefined if the directory is not open, or has to be opened again. */
  async #join({ durability }: OpenOptions, context: StorageContext): Promise<StorageSession | undefined> {
    const opened = this.#opened
    if (opened === undefined) return undefined
    // A directory that was moved away stays open, and another one may have taken its place.
    const session = opened.open(context)
    if (session === undefined) {
      await opened.close().catch(() => {})
      return undefined
    }
    try {
      if (durability === 'power-loss') await opened.requireSync()
      return session
    } catch (error) {
      await session.close().catch(() => {})
      throw error
    }
  }

  async #open({ durability }: OpenOptions, context: StorageContext): Promise<StorageSession> {
    const lock = await lockDirectory(this.#path)
    const storage: LogStorage = await openStorage(this.#path, durability, lock, context, async () => {
      await lock.release()
      if (this.#opened === storage) this.#opened = undefined
      this.#forgetIfUnused()
    })
    this.#opened = storage
    return storage.open(context)!
  }

  #forgetIfUnused(): void {
    if (this.#openings > 0 || this.#opened !== undefined) return
    const directories = registry()
    // If the directory was moved away, another one may have taken its place.
    if (directories.get(this.#path) === this) directories.delete(this.#path)
  }
}

async function openStorage(
  path: string,
  durability: Durability,
  lock: DirectoryLock,
  { clock }: StorageContext,
  release: () => Promise<void>,
): Promise<LogStorage> {
  try {
    const medium = await directoryMedium(nodeFiles(path))
    return await openLogStorage(medium, { durability, isFull: lock.wasFull, clock }, release)
  } catch (error) {
    await lock.release()
    throw error
  }
}
