/** A stream of a synced basin, as far as the choice of connections depends on it. */
export interface WindowStream {
  readonly name: string
  /** When the app used the stream last, in milliseconds; undefined if it has not in this session. */
  readonly usedAt: number | undefined
  /** When the stream was created on the server, in milliseconds; undefined if that is not known. */
  readonly createdAt: number | undefined
  /** Whether records of this device wait for the server. */
  readonly hasPending: boolean
}

/** The streams that a synced basin connects. */
export interface Window {
  /** Streams that stay connected: the most recently used ones. */
  readonly live: readonly string[]
  /** A stream that is connected until its pending records are sent; undefined if there is none. */
  readonly draining: string | undefined
}

/**
 * Chooses which streams are connected. Streams that the app used come first, the latest before the others,
 * then those that were created last. If streams outside of the window have records to send, one of them in
 * turn takes the last connection.
 */
export function windowOf(streams: readonly WindowStream[], connectionsMax: number, drained?: string): Window {
  const ordered = [...streams].sort(byUse)
  const outside = ordered.slice(connectionsMax).filter(({ hasPending }) => hasPending)
  if (outside.length === 0) return { live: namesOf(ordered.slice(0, connectionsMax)), draining: undefined }
  const last = outside.findIndex(({ name }) => name === drained)
  const draining = outside[(last + 1) % outside.length]!
  return { live: namesOf(ordered.slice(0, connectionsMax - 1)), draining: draining.name }
}

function byUse(a: WindowStream, b: WindowStream): number {
  return (
    (b.usedAt ?? -1) - (a.usedAt ?? -1) ||
    (b.createdAt ?? -1) - (a.createdAt ?? -1) ||
    (a.name < b.name ? -1 : 1)
  )
}

function namesOf(streams: readonly WindowStream[]): string[] {
  return streams.map(({ name }) => name)
}
