import { utf8Length } from '../model/bytes.ts'
import { STREAM_NAME_BYTES_MAX } from '../model/limits.ts'
import { streamNameProblem } from '../model/names.ts'

/** The decisions of a synced basin: which names it syncs, and which of its streams may connect. */

/** The beginning of the name of the outbox of a stream. */
export const OUTBOX_PREFIX = '.outbox/'

/** The limit for the name of a synced stream, beside which its outbox is stored, in bytes. */
export const SYNCED_NAME_BYTES_MAX = STREAM_NAME_BYTES_MAX - OUTBOX_PREFIX.length

/** Returns the problem with the name of a stream whose outbox could not be stored, or undefined. */
export function outboxNameProblem(name: string): string | undefined {
  if (utf8Length(name) <= SYNCED_NAME_BYTES_MAX) return undefined
  return `the name of a synced stream must not exceed ${SYNCED_NAME_BYTES_MAX} bytes in length`
}

/** Streams that sync keeps beside the app's: outboxes, snapshots of folds, names of elections. */
const INTERNAL = [OUTBOX_PREFIX, '.fold/', '.basin/']

/** Returns the problem with the name of a synced stream below a prefix, or undefined. */
export function syncedNameProblem(name: string, prefix: string): string | undefined {
  const problem = streamNameProblem(name)
  if (problem !== undefined) return problem
  if (!name.startsWith(prefix)) return `the name of the stream must begin with ${JSON.stringify(prefix)}`
  if (isInternalName(name)) return 'the name of the stream is one that sync uses itself'
  return outboxNameProblem(name)
}

/** Returns whether a name, or the beginning of one, belongs to streams that sync keeps beside the app's. */
export function isInternalName(name: string): boolean {
  return INTERNAL.some((prefix) => name.startsWith(prefix))
}

/** A stream that a tab has open, as it tells the other tabs. */
export interface OpenStream {
  readonly name: string
  /** When the app used it last, in milliseconds since the Unix epoch; 0 if it was only opened for a list. */
  readonly usedAt: number
  /**
   * When it had a connection last with nothing left to fetch or to send, or that failed. Infinite while it
   * has such a connection, and 0 if it never had.
   */
  readonly visitedAt: number
}

/** Joins what tabs have open: each stream once, the one that was used last first. */
export function openInTabs(tabs: Iterable<readonly OpenStream[]>): readonly OpenStream[] {
  const joined = new Map<string, OpenStream>()
  for (const stream of [...tabs].flat()) {
    const { name, usedAt, visitedAt } = joined.get(stream.name) ?? stream
    joined.set(name, {
      name,
      usedAt: Math.max(usedAt, stream.usedAt),
      visitedAt: Math.max(visitedAt, stream.visitedAt),
    })
  }
  return [...joined.values()].sort((a, b) => b.usedAt - a.usedAt || (a.name < b.name ? -1 : 1))
}

/**
 * Decides which open streams may connect: those that were used last. The last connection goes to the others
 * in turn, first to the one that had it longest ago, if that is `everyMs` ago. `before` are those that were
 * connected so far. Also returns the time in which another one is due, in milliseconds; infinite if none is.
 */
export function connectedStreams(
  open: readonly OpenStream[],
  before: ReadonlySet<string>,
  now: number,
  connectionsMax: number,
  everyMs: number,
): { readonly connected: ReadonlySet<string>; readonly dueInMs: number } {
  const always = open.slice(0, connectionsMax - 1)
  const others = open.slice(connectionsMax - 1)
  const dueInMs = ({ visitedAt }: OpenStream) =>
    visitedAt === Number.POSITIVE_INFINITY ? visitedAt : everyMs - Math.abs(now - visitedAt)
  const first = others.find((one) => others.every((other) => dueInMs(one) <= dueInMs(other)))
  // Those that are due soon follow one that was visited, before the connection goes back.
  const isVisiting = others.slice(1).some(({ name }) => before.has(name))
  const isDue = first !== undefined && dueInMs(first) <= (isVisiting ? everyMs / 2 : 0)
  const connected = [...always, ...(isDue ? [first] : others.slice(0, 1))]
  const later = others.map(dueInMs).filter((ms) => ms > 0)
  return { connected: new Set(connected.map(({ name }) => name)), dueInMs: Math.min(...later) }
}
