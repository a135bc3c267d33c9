import { readFile, readlink, stat } from 'node:fs/promises'
import { hostname } from 'node:os'

/** Names a process so that another one with its number is not taken for it: in full only where the system tells. */
export interface ProcessIdentity {
  readonly pid: number
  readonly host: string
  /** Of the kernel's start: no two starts, of whatever machines, have the same. */
  readonly boot?: string
  /** In which the number of the process means something: containers have their own. */
  readonly namespace?: string
  /** In which `started` means something: containers may shift the machine's start. */
  readonly timeNamespace?: string
  /** Of the process, in ticks since the machine's start. */
  readonly started?: string
}

export async function thisProcess(): Promise<ProcessIdentity> {
  const [boot, namespace, timeNamespace, found] = await Promise.all([
    bootOfKernel(),
    readlink('/proc/self/ns/pid').catch(ignoreUntold),
    readlink('/proc/self/ns/time').catch(ignoreUntold),
    statOf(process.pid),
  ])
  const known = { boot, namespace, timeNamespace, started: found?.started }
  const told = Object.entries(known).filter(([, value]) => value !== undefined && value !== '')
  return { pid: process.pid, host: hostname(), ...Object.fromEntries(told) }
}

/** Whether the process may still run, for all that its numbers tell `own`, this one. */
export async function mayRun(other: ProcessIdentity, own: ProcessIdentity): Promise<boolean> {
  if (other.host !== own.host) return true
  if (!isKnownToBeSame(other.boot, own.boot)) return true
  if (!isKnownToBeSame(other.namespace, own.namespace)) return true
  if (!exists(other.pid)) return false
  const found = await statOf(other.pid)
  if (found === undefined) return true
  // It has ended, and only waits for its parent to hear of it.
  if (found.state === 'Z' || found.state === 'X') return false
  if (other.started === undefined || other.timeNamespace !== own.timeNamespace) return true
  return found.started === other.started
}

/** Systems other than Linux tell none of these, and have no containers that share a host's name either. */
function isKnownToBeSame(one: string | undefined, other: string | undefined): boolean {
  return one === other && (one !== undefined || process.platform !== 'linux')
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it runs, as somebody else's.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Undefined for one that was made up for a container: several of those share a kernel, and would take each other for machines of the past. */
async function bootOfKernel(): Promise<string | undefined> {
  const path = '/proc/sys/kernel/random/boot_id'
  const [boot, file, processes] = await Promise.all([
    contentOf(path),
    stat(path).catch(ignoreUntold),
    stat('/proc/self').catch(ignoreUntold),
  ])
  return file?.dev === processes?.dev ? boot?.trim() : undefined
}

/** Undefined where the system does not tell. */
async function statOf(
  pid: number,
): Promise<{ readonly state: string; readonly started: string } | undefined> {
  if (!(await hasOwnNumbers())) return undefined
  const text = await contentOf(`/proc/${pid}/stat`)
  // The name of the program, in parentheses, may hold anything: fields are counted behind it.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, started] = [fields?.[0], fields?.[19]]
  return state === undefined || started === undefined ? undefined : { state, started }
}

/** A container may see the `/proc` of another one, where its numbers are those of other processes. */
async function hasOwnNumbers(): Promise<boolean> {
  return (await readlink('/proc/self').catch(ignoreUntold)) === String(process.pid)
}

async function contentOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(ignoreUntold)
}

/** There is no such file, or not for us, or its process has ended just now. */
const UNTOLD = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ESRCH'])

/** A system that tells and fails this once (too many open files) must not count as one that does not tell. */
function ignoreUntold(error: NodeJS.ErrnoException): undefined {
  if (!UNTOLD.has(error.code ?? '')) throw error
}
