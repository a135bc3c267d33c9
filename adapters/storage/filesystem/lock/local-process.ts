import { readFile, readlink, stat, statfs } from 'node:fs/promises'
import { hostname } from 'node:os'

/**
 * Identifies a process, so that another one with the same pid is not mistaken for it. Fields that the system
 * does not provide are absent.
 */
export interface ProcessIdentity {
  readonly pid: number
  /** Empty if the runtime does not permit reading it. */
  readonly host: string
  /** Boot id of the kernel: unique across machines and boots. */
  readonly boot?: string | undefined
  /** Pid namespace in which `pid` is valid: containers have their own. */
  readonly namespace?: string | undefined
  /** Time namespace in which `started` is valid: containers may shift the boot time. */
  readonly timeNamespace?: string | undefined
  /** Start of the process, in clock ticks since boot. */
  readonly started?: string | undefined
}

export async function currentProcess(): Promise<ProcessIdentity> {
  const [boot, namespace, timeNamespace, found] = await Promise.all([
    bootOfKernel(),
    readlink('/proc/self/ns/pid').catch(ignoreMissing),
    readlink('/proc/self/ns/time').catch(ignoreMissing),
    statOf(process.pid),
  ])
  const known = { boot, namespace, timeNamespace, started: found?.started }
  const present = Object.entries(known).filter(([, value]) => value !== undefined && value !== '')
  return { pid: process.pid, host: hostName(), ...Object.fromEntries(present) }
}

function hostName(): string {
  try {
    return hostname()
  } catch (error) {
    ignoreMissing(error as NodeJS.ErrnoException)
    return ''
  }
}

/** Whether a process is running; `unknown` where that cannot be determined from here. */
export type Liveness = 'alive' | 'dead' | 'unknown'

/** Judges a process by its pid, from the process `own`. */
export async function processLiveness(other: ProcessIdentity, own: ProcessIdentity): Promise<Liveness> {
  if (other.host === '' || other.host !== own.host) return 'unknown'
  if (!isKnownToBeSame(other.boot, own.boot)) return 'unknown'
  if (!isKnownToBeSame(other.namespace, own.namespace)) return 'unknown'
  if (!mayExist(other.pid)) return 'dead'
  const found = await statOf(other.pid)
  if (found === undefined) return 'unknown'
  // A zombie: it has ended, and its parent has not collected it yet.
  if (found.state === 'Z' || found.state === 'X') return 'dead'
  if (other.started === undefined || other.timeNamespace !== own.timeNamespace) return 'unknown'
  return found.started === other.started ? 'alive' : 'dead'
}

/** Systems other than Linux provide none of these, and have no containers that share a host name. */
function isKnownToBeSame(one: string | undefined, other: string | undefined): boolean {
  return one === other && (one !== undefined || process.platform !== 'linux')
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

/**
 * Undefined for a boot id that a container runtime made up: containers on one kernel would take each other
 * for earlier boots.
 */
async function bootOfKernel(): Promise<string | undefined> {
  const path = '/proc/sys/kernel/random/boot_id'
  const [boot, file, processes] = await Promise.all([
    contentOf(path),
    stat(path).catch(ignoreMissing),
    stat('/proc/self').catch(ignoreMissing),
  ])
  return file?.dev === processes?.dev ? boot?.trim() : undefined
}

/** Undefined where the system does not provide it. */
async function statOf(
  pid: number,
): Promise<{ readonly state: string; readonly started: string } | undefined> {
  if (!(await hasOwnPids())) return undefined
  const text = await contentOf(`/proc/${pid}/stat`)
  // The program name, in parentheses, may contain anything: count the fields after it.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, started] = [fields?.[0], fields?.[19]]
  return state === undefined || started === undefined ? undefined : { state, started }
}

/** A container may see the `/proc` of another one, with other pids. */
async function hasOwnPids(): Promise<boolean> {
  return (await readlink('/proc/self').catch(ignoreMissing)) === String(process.pid)
}

async function contentOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(ignoreMissing)
}

/**
 * The file does not exist, is not readable, or its process has just ended; or the runtime was started without
 * the permission.
 */
const MISSING = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ESRCH', 'ERR_ACCESS_DENIED'])
/** Errors of Deno without a permission, which have no code. */
const REFUSED = new Set(['NotCapable', 'PermissionDenied'])

/**
 * A transient error, such as too many open files, must not count as a system that does not provide the value.
 */
function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (!MISSING.has(error.code ?? '') && !REFUSED.has(error.name)) throw error
}

/**
 * File systems that only one kernel can have mounted, by Linux' type number: two kernels that mounted the
 * same disk would destroy them, and file systems in memory belong to one kernel. A machine that was cut off
 * from its disk can no longer change it.
 *
 * Overlays count, because their upper layer is in one mount at a time. File systems that machines share do
 * not (NFS, SMB, 9P, FUSE and therefore virtiofs, Ceph, Lustre, GFS2, OCFS2), nor do those stacked on top of
 * any other (eCryptfs).
 */
const LOCAL_TYPES: ReadonlyMap<number, string> = new Map([
  [0xef53, 'ext'],
  [0x58465342, 'xfs'],
  [0x9123683e, 'btrfs'],
  [0x2fc12fc1, 'zfs'],
  [0xf2f52010, 'f2fs'],
  [0xca451a4e, 'bcachefs'],
  [0x3153464a, 'jfs'],
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x794c7630, 'overlay'],
])

/** The name of a local file system; undefined for one that other kernels may have mounted too. */
export function localFileSystemName(type: number): string | undefined {
  return LOCAL_TYPES.get(type)
}

/**
 * Does the same as {@link localFileSystemName} for the file system at a path. Resolves to undefined on other
 * operating systems, whose type numbers differ.
 */
export async function localFileSystem(path: string): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined
  const found = await statfs(path).catch(ignoreMissing)
  return found && localFileSystemName(found.type)
}
