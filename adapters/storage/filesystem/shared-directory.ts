import { mkdir, realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SerialQueue } from '../../../src/runtime/queues.ts'
import type { Durability, StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { LogStorage } from '../log/storage.ts'
import { directoryMedium } from '../media/directory.ts'
import { nodeFiles, syncDirectory } from '../media/files.ts'
import { lockDirectory } from '../media/lock.ts'
import { mediumFailure } from '../media/medium.ts'

/** Enough for some ten thousand trims, or for a roll that leaves little. */
const RESERVE_BYTES = 4 * 1_048_576

/** Opens the storage in a directory, or joins the engines of this thread that have it open. */
type OpenDirectory = (durability: Durability, context: StorageContext) => Promise<StorageSession>

/** Ends with the version of {@link OpenDirectory} and of what the sessions do: others cannot use them. */
const REGISTRY = Symbol.for('headwater.filesystem.directories.2')

/**
 * The directories that were opened, by real path. Development servers evaluate modules again, and bundles
 * contain copies of them, so all copies in this thread share it. A closed one takes a few hundred bytes.
 */
function registry(): Map<string, OpenDirectory> {
  const scope = globalThis as { [REGISTRY]?: Map<string, OpenDirectory> | undefined }
  scope[REGISTRY] ??= new Map()
  return scope[REGISTRY]
}

/** Creates the directory for its owner only if needed. Opens the storage in it, or joins its engines. */
export async function openDirectory(
  path: string,
  durability: Durability,
  context: StorageContext,
): Promise<StorageSession> {
  try {
    await makeDirectory(path)
    const realPath = await realpath(path)
    const directories = registry()
    const open = directories.get(realPath) ?? sharedDirectory(realPath)
    directories.set(realPath, open)
    return await open(durability, context)
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

function sharedDirectory(path: string): OpenDirectory {
  const queue = new SerialQueue()
  let opened: { readonly storage: LogStorage; readonly durability: Durability } | undefined

  async function open(durability: Durability, context: StorageContext): Promise<StorageSession> {
    const joined = opened?.storage.join(context)
    if (joined === undefined) return openFirst(durability, context)
    if (opened?.durability === durability) return joined
    const message = `${path} is open in this process with durability '${opened?.durability}'`
    await joined.close()
    throw new StorageFailure('blocked', message, { nothingWritten: true })
  }

  async function openFirst(durability: Durability, context: StorageContext): Promise<StorageSession> {
    // A directory that was moved away stays open, and another one may have taken its place.
    await opened?.storage.close().catch(() => {})
    const lock = await lockDirectory(path)
    try {
      const medium = await directoryMedium(nodeFiles(path))
      const options = { durability, reserveBytes: RESERVE_BYTES, clock: context.clock }
      const storage: LogStorage = await LogStorage.open(medium, options, async () => {
        await lock.release()
        if (opened?.storage === storage) opened = undefined
      })
      opened = { storage, durability }
      return storage.join(context)!
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  return (durability, context) => queue.run(() => open(durability, context))
}
