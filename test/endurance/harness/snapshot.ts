import { getEventListeners } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { macrotask } from '../../../src/engine/macrotask.ts'

/** What a process has open, counted by kind. */
export type Counts = Readonly<Record<string, number>>

export interface Watched {
  /** Timers of the clock, counts of the engine and of the server: whatever a scenario can count. */
  readonly counts: () => Counts
  /** Whose listeners are counted. */
  readonly signals: readonly AbortSignal[]
}

const DESCRIPTORS = '/proc/self/fd'
const COLLECTIONS = 3

/** Handles, requests and timers of the event loop, file descriptors, listeners, and what the scenario counts. */
export function countsOf({ counts, signals }: Watched): Counts {
  const all: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) {
    // Of this very look, and of the turns that are waited for.
    if (kind !== 'Immediate') all[kind] = (all[kind] ?? 0) + 1
  }
  if (existsSync(DESCRIPTORS)) all.descriptors = readdirSync(DESCRIPTORS).length
  all['abort listeners'] = signals.reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0)
  for (const name of process.eventNames()) all[`process.on(${String(name)})`] = process.listenerCount(name)
  return { ...all, ...counts() }
}

/** What is in use after everything that nobody has any more was collected, buffers included. */
export async function bytesInUse(): Promise<number> {
  for (let i = 0; i < COLLECTIONS; i++) {
    // What is collected in one turn may let go of more in the next.
    globalThis.gc!()
    await macrotask()
  }
  return bytesNow()
}

/** The same in the middle of things: no turn passes. */
export function bytesNow(): number {
  globalThis.gc!()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** The kinds of which there are not as many as before, as `before → after`. */
export function differences(before: Counts, after: Counts): Readonly<Record<string, string>> {
  const kinds = new Set([...Object.keys(before), ...Object.keys(after)])
  const different = [...kinds].filter((kind) => (before[kind] ?? 0) !== (after[kind] ?? 0))
  return Object.fromEntries(different.map((kind) => [kind, `${before[kind] ?? 0} → ${after[kind] ?? 0}`]))
}
