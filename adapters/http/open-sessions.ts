import type { ReadCursor } from '../../src/index.ts'
import type { HandlerSettings } from './options.ts'
import type { ApiRequest } from './request.ts'

/** A read session that is open. */
export interface OpenSession {
  readonly cursor: ReadCursor
  readonly request: ApiRequest
  readonly protocol: 'events' | 'frames'
  /** When it was opened, in milliseconds since the Unix epoch. */
  readonly openedAt: number
}

const sessionsOf = new WeakMap<HandlerSettings, Set<OpenSession>>()

/** The open sessions of a handler, the oldest first. */
export function openSessions(settings: HandlerSettings): Set<OpenSession> {
  const known = sessionsOf.get(settings)
  if (known !== undefined) return known
  const sessions = new Set<OpenSession>()
  sessionsOf.set(settings, sessions)
  return sessions
}
