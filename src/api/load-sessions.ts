import { loaded } from '../runtime/lazy-module.ts'

/** Loads the code of sessions, producers, `appendAll` and JSON records. Rejects with `unavailable`. */
export function loadSessions(): Promise<typeof import('./session-parts.ts')> {
  return loaded('the code of sessions', import('./session-parts.ts'))
}
