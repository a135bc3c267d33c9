import { readFile, readlink } from 'node:fs/promises'
import { hostname } from 'node:os'

/** Names a process so that another one with its number is not taken for it: in full only where the system tells. */
export interface ProcessIdentity {
  readonly pid: number
  readonly host: string
  /** Of the machine's start: no two starts, of whatever machines, have the same. */
  readonly boot?: string
  /** Of the machine: host names are given out twice. */
  readonly machine?: string
  /** In which the number of the process means something: containers have their own. */
  readonly namespace?: string
  /** Of the process. */
  readonly started?: string
}

export async function thisProcess(): Promise<ProcessIdentity> {
  const [boot, machine, namespace, stat] = await Promise.all([
    contentOf('/proc/sys/kernel/random/boot_id'),
    contentOf('/etc/machine-id'),
    namespaceOfNumbers(),
    statOf(process.pid),
  ])
  const known = { boot: boot?.trim(), machine: machine?.trim(), namespace, started: stat?.started }
  const told = Object.entries(known).filter(([, value]) => value !== undefined && value !== '')
  return { pid: process.pid, host: hostname(), ...Object.fromEntries(told) }
}

/** Whether the process may still run, for all that `own`, this one, can know. */
export async function mayRun(other: ProcessIdentity, own: ProcessIdentity): Promise<boolean> {
  if (other.host !== own.host) return true
  const isSameStart = isKnownToBeSame(other.boot, own.boot)
  if (!isSameStart && !isKnownToBeSame(other.machine, own.machine)) return true
  if (!isSameStart && other.boot !== undefined && own.boot !== undefined) return false
  if (!isKnownToBeSame(other.namespace, own.namespace)) return true
  if (!exists(other.pid)) return false
  const stat = await statOf(other.pid)
  if (stat === undefined) return true
  // It has ended, and only waits for its parent to hear of it.
  if (stat.state === 'Z' || stat.state === 'X') return false
  return other.started === undefined || stat.started === other.started
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

async function namespaceOfNumbers(): Promise<string | undefined> {
  return readlink('/proc/self/ns/pid').catch(ignoreUntold)
}

/** `started` is in ticks since the machine's start. Undefined where the system does not tell. */
async function statOf(
  pid: number,
): Promise<{ readonly state: string; readonly started: string } | undefined> {
  const stat = await contentOf(`/proc/${pid}/stat`)
  // The name of the program, in parentheses, may hold anything: fields are counted behind it.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, started] = [fields?.[0], fields?.[19]]
  return state === undefined || started === undefined ? undefined : { state, started }
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
