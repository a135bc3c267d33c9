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
  const [boot, started] = await Promise.all([bootOfMachine(), startOf(process.pid)])
  return {
    pid: process.pid,
    host: hostname(),
    ...(boot === undefined ? {} : { boot }),
    ...(started === undefined ? {} : { started }),
  }
}

/** Whether the process may still run. Of one on another host nothing can be known, so it may. */
export async function mayRun(other: ProcessIdentity): Promise<boolean> {
  if (other.host !== hostname()) return true
  if (other.boot !== undefined && other.boot !== (await bootOfMachine())) return false
  if (!exists(other.pid)) return false
  if (other.started === undefined) return true
  const started = await startOf(other.pid)
  return started === undefined || started === other.started
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

/** In ticks since the machine's start. The name of the program, in parentheses, may hold anything, so fields are counted behind it. */
async function startOf(pid: number): Promise<string | undefined> {
  const stat = await contentOf(`/proc/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}
