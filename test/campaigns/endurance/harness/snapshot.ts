import { getEventListeners } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { macrotask } from '../../../../src/runtime/macrotask.ts'

/** The number of open resources of a process, by kind. */
export type Counts = Readonly<Record<string, number>>

export interface Watched {
  /** Counts of the scenario: timers of the clock, statistics of the engine and the server. */
  readonly counts: () => Counts
  /** The signals whose listeners are counted. */
  readonly signals: readonly AbortSignal[]
}

const DESCRIPTORS = '/proc/self/fd'
const COLLECTIONS = 3

/**
 * Counts handles, requests and timers of the event loop, file descriptors, listeners, and what the scenario
 * counts.
 */
export function countsOf({ counts, signals }: Watched): Counts {
  const all: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) {
    // Created by this function and by waiting for turns.
    if (kind !== 'Immediate') all[kind] = (all[kind] ?? 0) + 1
  }
  if (existsSync(DESCRIPTORS)) all.descriptors = readdirSync(DESCRIPTORS).length
  all['abort listeners'] = signals.reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0)
  for (const name of process.eventNames()) all[`process.on(${String(name)})`] = process.listenerCount(name)
  return { ...all, ...counts() }
}

/** The memory in use after a complete collection, including buffers. */
export async function bytesInUse(): Promise<number> {
  for (let i = 0; i < COLLECTIONS; i++) {
    // Objects collected in one turn may release more in the next.
    globalThis.gc!()
    await macrotask()
  }
  return bytesNow()
}

/** The same without yielding a turn, for use within a round. */
export function bytesNow(): number {
  globalThis.gc!()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** The kinds whose number changed, as `before → after`. */
export function differences(before: Counts, after: Counts): Readonly<Record<string, string>> {
  const kinds = new Set([...Object.keys(before), ...Object.keys(after)])
  const different = [...kinds].filter((kind) => (before[kind] ?? 0) !== (after[kind] ?? 0))
  return Object.fromEntries(different.map((kind) => [kind, `${before[kind] ?? 0} → ${after[kind] ?? 0}`]))
}
