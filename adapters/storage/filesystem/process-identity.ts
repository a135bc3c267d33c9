import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'

/** Names a process so that another one with its number is not taken for it. */
export interface ProcessIdentity {
  readonly pid: number
  readonly host: string
  /** Of the machine's start; only where the system tells. */
  readonly boot?: string
  /** Of the process; only where the system tells. */
  readonly started?: string
}

export async function thisProcess(): Promise<ProcessIdentity> {
  const [boot, stat] = await Promise.all([bootOfMachine(), statOf(process.pid)])
  return {
    pid: process.pid,
    host: hostname(),
    ...(boot === undefined ? {} : { boot }),
    ...(stat === undefined ? {} : { started: stat.started }),
  }
}

/** Whether the process may still run. Of one on another host nothing can be known, so it may. */
export async function mayRun(other: ProcessIdentity): Promise<boolean> {
  if (other.host !== hostname()) return true
  if (other.boot !== undefined && other.boot !== (await bootOfMachine())) return false
  if (!exists(other.pid)) return false
  const stat = await statOf(other.pid)
  if (stat === undefined) return true
  // It has ended, and only waits for its parent to hear of it.
  if (stat.state === 'Z' || stat.state === 'X') return false
  return other.started === undefined || stat.started === other.started
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

async function bootOfMachine(): Promise<string | undefined> {
  return (await contentOf('/proc/sys/kernel/random/boot_id'))?.trim()
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
  try {
    return await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}
