/** The state that decides which streams of a synced basin are connected. */
interface BasinPlanInput {
  /** The streams that the app has open, the one that was used last first. */
  readonly open: readonly string[]
  /** Streams that wait for the app, and so need no connection. */
  readonly stopped: ReadonlySet<string>
  /** Streams that have records to fetch or to send, in the order of their turns. */
  readonly due: Iterable<string>
  /** The number of connections, at least 1. */
  readonly connectionsMax: number
}

/** The streams of a synced basin that may connect. */
interface BasinPlan {
  /** They follow the server until others are used more recently. */
  readonly followed: readonly string[]
  /** The stream whose turn it is. */
  readonly visited: string | undefined
}

/**
 * Decides which streams of a synced basin may connect. The most recently used ones of those that are open
 * follow the server. As long as other streams are due, they have the last connection in turn.
 */
export function planOf({ open, stopped, due, connectionsMax }: BasinPlanInput): BasinPlan {
  const candidates = open.filter((name) => !stopped.has(name))
  const followed = candidates.slice(0, connectionsMax)
  const isFollowed = new Set(followed)
  for (const name of due) {
    if (isFollowed.has(name)) continue
    const rest = candidates.filter((other) => other !== name)
    return { followed: rest.slice(0, connectionsMax - 1), visited: name }
  }
  return { followed, visited: undefined }
}
