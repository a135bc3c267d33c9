import type { Engine, ReadCursor } from '../../src/index.ts'
import type { RequestExchange } from './exchange.ts'

/** A read session that is open. */
export interface OpenSession {
  /** @internal */
  readonly cursor: ReadCursor
  readonly exchange: RequestExchange
  readonly protocol: 'events' | 'frames' | 'durable-streams'
  /** The time at which it was opened, in milliseconds since the Unix epoch. */
  readonly openedAt: number
}

const sessionsOf = new WeakMap<Engine, Set<OpenSession>>()

/** The open sessions of all handlers of an engine, whatever their protocol, the oldest first. */
export function openSessions(owner: Engine): Set<OpenSession> {
  const known = sessionsOf.get(owner)
  if (known !== undefined) return known
  const sessions = new Set<OpenSession>()
  sessionsOf.set(owner, sessions)
  return sessions
}
