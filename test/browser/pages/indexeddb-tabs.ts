import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Clock, type Headwater, open, type StorageSession, systemClock } from '../../../src/index.ts'

let hw: Headwater
let session: StorageSession
const turns: boolean[] = []
const followed: string[] = []

/** Nothing that takes a second or longer comes: what is learned is learned from hints. */
const impatient: Clock = {
  now: () => systemClock.now(),
  schedule: (delayMs, callback, options) =>
    delayMs < 1000 ? systemClock.schedule(delayMs, callback, options) : () => {},
}

export async function openEngine(name: string): Promise<void> {
  hw = await open({ storage: indexedDb(name), clock: impatient })
}

export async function closeEngine(): Promise<void> {
  await hw.close()
}

export async function append(body: string): Promise<number> {
  const { start } = await hw.basin('b').stream('log').append(body)
  return start.seqNum
}

/** Follows from the first record on. */
export async function follow(): Promise<void> {
  const reading = await hw.basin('b').stream('log').openRead({ seqNum: 0 })
  const on = async () => {
    for (;;) {
      const event = await reading!.next()
      if (event?.kind !== 'batch') return
      followed.push(...event.batch.text.map(({ body }) => body))
    }
  }
  // Ends with the engine.
  on().catch(() => {})
}

export function seen(): string[] {
  return followed
}

/** Takes part in the turns of background work. */
export async function takePart(name: string): Promise<void> {
  session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
  session.backgroundTurn!((isOurs) => turns.push(isOurs))
}

/** What was told so far. */
export function told(): boolean[] {
  return turns
}

export async function leave(): Promise<void> {
  await session.close()
}
