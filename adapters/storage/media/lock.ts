import { readlinkSync } from 'node:fs'
import { open, readdir, readFile, stat, unlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { threadId } from 'node:worker_threads'
import { StorageFailure } from '../../../src/storage/errors.ts'

/** How often an opening tries again that met another one. */
const ATTEMPTS_MAX = 5
const PAUSE_MS = 20

/** A directory that no other process and no other thread has open. */
export interface DirectoryLock {
  release(): Promise<void>
}

/**
 * The holder of a lock. All of it is in the name of the file, which is empty: so it is created in one step,
 * and on a full disk.
 */
interface Owner {
  readonly pid: number
  /** Start of the thread in clock ticks, and boot id of the kernel. Empty where the system does not tell. */
  readonly started: string
  /** The id of the thread in the kernel, or in the process where the system does not tell it. */
  readonly thread: number
  /** Percent-encoded. Empty in Deno without `--allow-sys`. */
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
  const name = `lock-${own.pid}.${own.started || '.'}.${own.thread}.${own.host}`
  const file = join(path, name)
  const release = () => unlink(file).catch(ignoreMissing)
  for (let attempt = 1; ; attempt++) {
    await assertUnlocked(path)
    await (await open(file, 'wx', 0o600)).close()
    try {
      await assertUnlocked(path, name)
      for (const other of await lockNames(path)) {
        if (other !== name) await unlink(join(path, other)).catch(ignoreMissing)
      }
      return { release }
    } catch (error) {
      await release()
      // Both may have given up for the other.
      if (attempt >= ATTEMPTS_MAX || !StorageFailure.is(error)) throw error
      await setTimeout(PAUSE_MS * attempt * (0.5 + Math.random()))
    }
  }
}

/** Rejects with `StorageFailure` of kind `blocked` if another owner may have the directory open. */
export async function assertUnlocked(path: string, ownName?: string): Promise<void> {
  const own = await currentOwner()
  for (const name of await lockNames(path)) {
    if (name === ownName) continue
    const owner = ownerOf(name)
    const liveness = owner === undefined ? 'unknown' : await livenessOf(owner, own)
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

/** Undefined for a name that is not that of an owner. */
function ownerOf(name: string): Owner | undefined {
  const [, pid, started, thread, host] = /^lock-(\d+)\.(\d*\.[\w-]*)\.(\d+)\.(.*)$/.exec(name) ?? []
  if (started === undefined) return undefined
  const isKnown = /^\d+\../.test(started)
  return { pid: Number(pid), started: isKnown ? started : '', thread: Number(thread), host: host! }
}

async function currentOwner(): Promise<Owner> {
  const { pid } = process
  const thread = kernelThread()
  const started = thread === undefined ? undefined : await startOf(pid, thread)
  return { pid, started: started ?? '', thread: thread ?? threadId, host: ownHost() }
}

function ownHost(): string {
  try {
    return encodeURIComponent(hostname())
  } catch {
    return ''
  }
}

/**
 * The id of this thread on Linux, unless `/proc` is that of another container. Synchronous, because other
 * threads do what is asynchronous.
 */
function kernelThread(): number | undefined {
  try {
    const [pid, , thread] = readlinkSync('/proc/thread-self').split('/')
    return Number(pid) === process.pid ? Number(thread) : undefined
  } catch {
    return undefined
  }
}

type Liveness = 'alive' | 'dead' | 'unknown'

/**
 * An owner is dead if it ran on this host, and its process or thread does not exist any more or was started
 * at another time: ids are used again, and development servers replace the threads that run an app.
 * Containers are hosts of their own, so two that run at the same time must not have the same host name.
 */
async function livenessOf(owner: Owner, own: Owner): Promise<Liveness> {
  if (owner.host !== own.host || own.host === '') return 'unknown'
  if (!mayExist(owner.pid)) return 'dead'
  const isTold = owner.started !== '' && own.started !== ''
  const started = isTold ? await startOf(owner.pid, owner.thread) : undefined
  if (started === undefined) return owner.pid === own.pid ? 'alive' : 'unknown'
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

/** Resolves to the start of a thread, to `ended`, or to undefined where the system does not tell. */
async function startOf(pid: number, thread: number): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
    // The processes of other users may be hidden.
    await stat(`/proc/${pid}/task`)
    const text = await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(ignoreMissing)
    // The program name, in parentheses, may contain anything: count the fields after it.
    const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
    const isRunning = fields !== undefined && fields[0] !== 'Z' && fields[0] !== 'X'
    return isRunning ? `${fields[19]}.${boot.trim()}` : 'ended'
  } catch {
    return undefined
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  // The last one: a thread that ends meanwhile.
  if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error
}

async function blocked(path: string, name: string, owner: Owner | undefined, liveness: Liveness) {
  const file = join(path, name)
  const since = (await stat(file).catch(() => undefined))?.mtime.toISOString()
  let holder = 'an unknown process'
  if (owner !== undefined) holder = `process ${owner.pid} on ${owner.host}${since ? `, since ${since}` : ''}`
  if (owner?.pid === process.pid && liveness === 'alive') {
    holder = `another thread of this process (${owner.pid})`
  }
  const remedy = liveness === 'alive' ? '' : `. If that does not run any more, remove ${file}`
  return new StorageFailure('blocked', `${path} is open in ${holder}${remedy}`, { nothingWritten: true })
}
