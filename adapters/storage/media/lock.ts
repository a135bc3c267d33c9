import { readlinkSync } from 'node:fs'
import { open, readdir, readFile, readlink, stat, unlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { threadId } from 'node:worker_threads'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { releaseReserve } from './directory.ts'
import { isFullError } from './medium.ts'
import { nodeFiles } from './node-files.ts'

/** How often an opening tries again that met another one. */
const ATTEMPTS_MAX = 5
const PAUSE_MS = 20

/** A directory that no other process and no other thread has open. */
export interface DirectoryLock {
  /** Whether the disk was full. */
  readonly wasFull: boolean
  release(): Promise<void>
}

/**
 * The holder of a lock. All of it is in the name of the file, which is empty: so it is created in one step,
 * and on a full disk.
 */
interface Owner {
  readonly pid: number
  /** The start of the thread in clock ticks since boot, because ids are used again. Empty if unknown. */
  readonly started: string
  /** The boot id of the kernel; empty if unknown. */
  readonly boot: string
  /** The id of the thread in the kernel, or in the process where the system does not tell it. */
  readonly thread: number
  readonly host: string
}

/**
 * Locks a directory, in which it creates one file. Rejects with `StorageFailure` of kind `blocked` if another
 * owner may be alive, and otherwise with the system's error.
 *
 * An owner creates its own file, and then looks for others. So of two that want the lock at once, the one
 * that looks last sees the other, and at most one has it.
 */
export async function lockDirectory(path: string): Promise<DirectoryLock> {
  const own = await currentOwner()
  const name = nameOf(own)
  for (let attempt = 1; ; attempt++) {
    await assertUnlocked(path, own)
    const wasFull = await create(path, name)
    try {
      await assertUnlocked(path, own, name)
      for (const other of await lockNames(path))
        if (other !== name) await unlink(join(path, other)).catch(ignoreMissing)
      return { wasFull, release: () => unlink(join(path, name)).catch(ignoreMissing) }
    } catch (error) {
      await unlink(join(path, name)).catch(ignoreMissing)
      // Both may have given up for the other.
      if (attempt >= ATTEMPTS_MAX || !StorageFailure.is(error)) throw error
      await setTimeout(PAUSE_MS * attempt * (0.5 + Math.random()))
    }
  }
}

/** Rejects with `StorageFailure` of kind `blocked` if another owner may have the directory open. */
export async function assertUnlocked(path: string, own?: Owner, ownName?: string): Promise<void> {
  const current = own ?? (await currentOwner())
  for (const name of await lockNames(path)) {
    if (name === ownName) continue
    const owner = ownerOf(name)
    const liveness = owner === undefined ? 'unknown' : await livenessOf(owner, current)
    if (liveness !== 'dead') throw await blocked(path, name, owner, liveness)
  }
}

/** Whether a file is a lock. */
export function isLockName(name: string): boolean {
  return name.startsWith('lock-')
}

async function lockNames(path: string): Promise<string[]> {
  return (await readdir(path)).filter(isLockName)
}

/** Creates an empty file. Resolves to whether the disk was so full that the reserve was given up. */
async function create(path: string, name: string): Promise<boolean> {
  const make = async () => (await open(join(path, name), 'wx', 0o600)).close()
  try {
    await make()
    return false
  } catch (error) {
    if (!isFullError(error) || !(await releaseReserve(nodeFiles(path)))) throw error
    await make()
    return true
  }
}

function nameOf({ pid, started, boot, thread, host }: Owner): string {
  return `lock-${pid}.${started}.${boot}.${thread}.${encodeURIComponent(host)}`
}

/** Undefined for a name that is not that of an owner. */
function ownerOf(name: string): Owner | undefined {
  const match = /^lock-(\d+)\.(\d*)\.([\w-]*)\.(\d+)\.(.*)$/.exec(name)
  if (match === null) return undefined
  const [, pid, started, boot, thread, host] = match as unknown as string[]
  try {
    return {
      pid: Number(pid),
      started: started!,
      boot: boot!,
      thread: Number(thread),
      host: decodeURIComponent(host!),
    }
  } catch {
    return undefined
  }
}

async function currentOwner(): Promise<Owner> {
  const { pid } = process
  const thread = kernelThread() ?? threadId
  const [boot = '', started = ''] = await Promise.all([bootId(), startOf(pid, thread)])
  return { pid, started, boot, thread, host: hostname() }
}

/** The id of this thread on Linux. Synchronous, because other threads do what is asynchronous. */
function kernelThread(): number | undefined {
  try {
    return Number(basename(readlinkSync('/proc/thread-self')))
  } catch (error) {
    ignoreMissing(error as NodeJS.ErrnoException)
    return undefined
  }
}

type Liveness = 'alive' | 'dead' | 'unknown'

/**
 * An owner is dead if it ran on this host, before this boot of it or as a process or a thread that does not
 * exist any more: development servers replace the threads that run an app. Containers are hosts of their own,
 * so two that run at the same time must not have the same host name.
 */
async function livenessOf(owner: Owner, own: Owner): Promise<Liveness> {
  if (owner.host !== own.host) return 'unknown'
  if (owner.boot !== own.boot) return owner.boot === '' || own.boot === '' ? 'unknown' : 'dead'
  if (!mayExist(owner.pid)) return 'dead'
  const started = await startOf(owner.pid, owner.thread)
  if (started === undefined || owner.started === '') return owner.pid === own.pid ? 'alive' : 'unknown'
  return started === owner.started ? 'alive' : 'dead'
}

function mayExist(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Other errors: the process is running as another user, or the runtime refuses to look.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** Undefined for a boot id that a container runtime made up: it would tell an earlier boot. */
async function bootId(): Promise<string | undefined> {
  const path = '/proc/sys/kernel/random/boot_id'
  const [boot, file, processes] = await Promise.all([
    readFile(path, 'utf8').catch(ignoreMissing),
    stat(path).catch(ignoreMissing),
    stat('/proc/self').catch(ignoreMissing),
  ])
  return file?.dev === processes?.dev ? boot?.trim() : undefined
}

/** The start of a thread, or that it has ended. Undefined where the system does not tell. */
async function startOf(pid: number, thread: number): Promise<string | undefined> {
  // A container may see the `/proc` of another one, with other pids.
  if ((await readlink('/proc/self').catch(ignoreMissing)) !== String(process.pid)) return undefined
  const read = (path: string) => readFile(`/proc/${pid}/${path}`, 'utf8').catch(ignoreMissing)
  if ((await read('stat')) === undefined) return undefined
  const text = await read(`task/${thread}/stat`)
  if (text === undefined) return 'ended'
  // The program name, in parentheses, may contain anything: count the fields after it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19]
}

/** The file does not exist, or the runtime does not permit reading it. */
const MISSING = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ESRCH', 'ERR_ACCESS_DENIED'])
/** Errors of Deno without a permission, which have no code. */
const REFUSED = new Set(['NotCapable', 'PermissionDenied'])

/** A transient error, such as too many open files, must not count as a missing file. */
function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (!MISSING.has(error.code ?? '') && !REFUSED.has(error.name)) throw error
}

async function blocked(
  path: string,
  name: string,
  owner: Owner | undefined,
  liveness: Liveness,
): Promise<StorageFailure> {
  const file = join(path, name)
  const remedy = liveness === 'alive' ? '' : `. If that does not run any more, remove ${file}`
  if (owner === undefined) return failure(`${path} is locked by an unknown process${remedy}`)
  const { pid, host } = owner
  if (liveness === 'alive' && pid === process.pid) {
    return failure(`${path} is open in another thread of this process (${pid})`)
  }
  const since = (await stat(file).catch(() => undefined))?.mtime.toISOString()
  return failure(`${path} is open in process ${pid} on ${host}${since && `, since ${since}`}${remedy}`)
}

function failure(message: string): StorageFailure {
  return new StorageFailure('blocked', message, { nothingWritten: true })
}
