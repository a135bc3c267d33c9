/** Collection `deadlines`, key: {@link deadlineKey}: when to look whether a stream with delete-on-empty goes. Persisted: see `documents.ts`. */
export interface DeadlineDocument {
  readonly basin: string
  readonly stream: string
  readonly logId: string
}

/** Deadlines lie in the order of their time, which has 16 digits: enough for 2^53. */
export function deadlineKey(at: number, logId: string): string {
  return `delete-on-empty\0${deadlineTime(at)}\0${logId}`
}

export const DEADLINE_PREFIX = 'delete-on-empty\0'

/** The time of a deadline's key. */
export function deadlineTimeOf(key: string): number {
  return Number(key.slice(DEADLINE_PREFIX.length, DEADLINE_PREFIX.length + 16))
}

function deadlineTime(at: number): string {
  return String(Math.ceil(at)).padStart(16, '0')
}
