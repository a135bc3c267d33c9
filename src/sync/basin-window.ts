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
