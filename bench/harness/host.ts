import { readFileSync } from 'node:fs'

/** One side of a comparison, prepared in a process of its own. */
export interface Prepared {
  /** What the load needs to know, such as the port of a server. */
  readonly info?: Info
  /** Runs before each turn and is not timed. */
  readonly reset?: () => unknown
  /** Does `count` units of work. Returns their number if it differs, or what it measured itself. */
  readonly turn?: (count: number) => unknown
  /** CPU milliseconds and peak bytes of another process that does the work. */
  readonly usage?: () => Usage
  readonly close?: () => unknown
}

export type Info = Readonly<Record<string, string | number>>
export type Params = Readonly<Record<string, unknown>>
// biome-ignore lint/suspicious/noExplicitAny: each side knows the type of its parameters.
export type Sides = Readonly<Record<string, (params: any) => Promise<Prepared> | Prepared>>

export interface Usage {
  readonly cpuMs: number
  /** The most memory that the process ever had. */
  readonly peakBytes: number
}

export interface Turn {
  readonly wallMs: number
  readonly units: number
}

/** One collection frees pages, and the next one returns them to the system. */
const COLLECTIONS = 3

/** Serves the calls of {@link Child} in the parent process. */
export function host(sides: Sides): void {
  let prepared: Prepared | undefined
  const methods = {
    async prepare(side: string, params: Params): Promise<Info> {
      prepared = await sides[side]!(params)
      return prepared.info ?? {}
    },
    async turn(count: number): Promise<Turn> {
      const start = performance.now()
      const result = await prepared!.turn!(count)
      const wallMs = performance.now() - start
      const measured = typeof result === 'object' ? (result as Partial<Turn>) : {}
      return { wallMs, units: typeof result === 'number' ? result : count, ...measured }
    },
    async reset(): Promise<void> {
      // Never collects garbage, which discards compiled code: the turn would measure the compiler.
      await prepared?.reset?.()
    },
    usage: (): Usage => prepared?.usage?.() ?? usageOfThisProcess(),
    residentBytes(): number {
      for (let i = 0; i < COLLECTIONS; i++) globalThis.gc?.()
      return process.memoryUsage.rss()
    },
    async close(): Promise<void> {
      await prepared?.close?.()
    },
  }
  process.on('message', async ({ method, args }: { method: keyof typeof methods; args: never[] }) => {
    try {
      const value = await (methods[method] as (...args: never[]) => unknown)(...args)
      process.send!({ value })
    } catch (error) {
      process.send!({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  process.on('disconnect', () => process.exit())
}

function usageOfThisProcess(): Usage {
  const { user, system } = process.cpuUsage()
  return { cpuMs: (user + system) / 1000, peakBytes: process.resourceUsage().maxRSS * 1024 }
}

/** What Linux counts processor time in. */
const TICK_MS = 10

/** The usage of another process that does the work of this one, on Linux. */
export function usageOf(pid: number): Usage {
  // The fields after the name of the program, which may contain spaces.
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]
  return { cpuMs: (Number(stat[11]) + Number(stat[12])) * TICK_MS, peakBytes: Number(peak) * 1024 }
}
