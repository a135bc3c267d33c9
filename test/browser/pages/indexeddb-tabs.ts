import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Clock, type Engine, open, systemClock } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'

let hw: Engine
let session: StorageSession
const reported: boolean[] = []
const bodies: string[] = []

/** Disables timers of a second and more, and with them polling, so that followers depend on hints. */
const clock: Clock = {
  now: () => systemClock.now(),
  schedule: (delayMs, callback, options) =>
    delayMs < 1000 ? systemClock.schedule(delayMs, callback, options) : () => {},
}

export async function openEngine(name: string): Promise<void> {
  hw = await open({ storage: indexedDb(name), clock })
}

export async function closeEngine(): Promise<void> {
  await hw.close()
}

export async function append(body: string): Promise<number> {
  const { start } = await hw.basin('b').stream('log').append(body)
  return start.seqNum
}

/** Follows the stream from its first record. */
export function follow(): void {
  const { records$ } = hw.basin('b').stream('log').follow({ seqNum: 0 })
  // It fails when the engine closes.
  records$.subscribe({ next: ({ body }) => bodies.push(body), error: () => {} })
}

export function followed(): string[] {
  return bodies
}

/** Opens a session that contends for background work. */
export async function contend(name: string): Promise<void> {
  session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
  session.electForBackgroundWork!((isElected) => reported.push(isElected))
}

/** The results of elections reported so far. */
export function elections(): boolean[] {
  return reported
}

export async function closeSession(): Promise<void> {
  await session.close()
}
