import { backOffMs } from './failures.ts'

/** Decides which streams of a synced basin connect, and when those without a connection have their turn. */

/** The state that decides which streams of a synced basin get a connection. */
export interface WindowInput {
  /** The streams that this device used, the one that was used last first. */
  readonly used: readonly string[]
  /** All other streams, in the order in which they take what is left. */
  readonly others: readonly string[]
  /** Streams that need a connection for a while: they have records to send, or were not caught up with. */
  readonly due: readonly string[]
  /** Those of them that hold one at the moment. */
  readonly visited: readonly string[]
  /** Streams that wait for the app, and so need no connection. */
  readonly stopped: ReadonlySet<string>
  /** The number of connections, at least 1. */
  readonly slots: number
}

/** The streams of a synced basin that may connect. */
export interface BasinWindow {
  /** They follow the server until others are used more recently. */
  readonly live: readonly string[]
  /** They catch up and send what waits, and then make room for others. */
  readonly visited: readonly string[]
}

/**
 * Returns the streams that may connect. The most recently used ones follow the server. As long as streams
 * outside of this window are due, they have the last connection in turn, and those that are left over.
 * Stopped streams that were used keep their place without a connection, for the app to continue them.
 */
export function windowOf({ used, others, due, visited, stopped, slots }: WindowInput): BasinWindow {
  const candidates = [...used, ...others].filter((name) => !stopped.has(name))
  const held = used.filter((name) => stopped.has(name))
  const whole = candidates.slice(0, slots)
  const isOutside = (name: string) => !whole.includes(name)
  if (!due.some(isOutside)) return { live: [...held, ...whole], visited: [] }
  const live = whole.slice(0, slots - 1)
  // The stream that gives the last connection away may be due too.
  const waiting = due.filter((name) => !live.includes(name))
  const current = visited.filter((name) => waiting.includes(name))
  const next = waiting.filter((name) => !visited.includes(name))
  return { live: [...held, ...live], visited: [...current, ...next].slice(0, slots - live.length) }
}

interface DueStream {
  /** Milliseconds since the Unix epoch, before which the stream is left alone. */
  readonly notBefore: number
  readonly failures: number
}

/** Streams that need a connection for a while, in the order of their turns. */
export type DueStreams = ReadonlyMap<string, DueStream>

export const NONE_DUE: DueStreams = new Map()

/** Returns the streams with further ones behind them. Those that are due already keep their turn. */
export function withDue(due: DueStreams, names: readonly string[]): DueStreams {
  const added = names.filter((name) => !due.has(name))
  if (added.length === 0) return due
  return new Map([...due, ...added.map((name) => [name, { notBefore: 0, failures: 0 }] as const)])
}

/** Returns the streams without those that need no connection any more. */
export function withoutDue(due: DueStreams, names: readonly string[]): DueStreams {
  if (!names.some((name) => due.has(name))) return due
  const left = new Map(due)
  for (const name of names) left.delete(name)
  return left
}

/** Returns the streams with one behind all others, and later if its turn has failed. */
export function postponed(
  due: DueStreams,
  name: string,
  { now, random, hasFailed }: { readonly now: number; readonly random: number; readonly hasFailed: boolean },
): DueStreams {
  const before = due.get(name)
  if (before === undefined) return due
  const failures = hasFailed ? before.failures + 1 : before.failures
  const notBefore = hasFailed ? now + backOffMs(failures, random) : before.notBefore
  const left = new Map(due)
  left.delete(name)
  return left.set(name, { notBefore, failures })
}

/** Returns the names of the streams whose turn may begin now. */
export function dueAt(due: DueStreams, now: number): readonly string[] {
  return [...due].flatMap(([name, { notBefore }]) => (notBefore <= now ? [name] : []))
}

/** Returns the time at which the turn of a further stream may begin; undefined if there is none. */
export function nextDueAt(due: DueStreams, now: number): number | undefined {
  const times = [...due.values()].map(({ notBefore }) => notBefore).filter((time) => time > now)
  return times.length === 0 ? undefined : Math.min(...times)
}
