import { backOffMs } from './failures.ts'

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
