import { checkRead, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { systemClock } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'

/** The outcome of a call: `done`, or the failure. */
interface Outcome {
  readonly kind: string
  readonly nothingWritten?: boolean
  readonly message?: string
}

let session: StorageSession

async function outcomeOf(work: Promise<unknown>): Promise<Outcome> {
  try {
    await work
    return { kind: 'done' }
  } catch (error) {
    if (!StorageFailure.is(error)) throw error
    const { kind, nothingWritten, message } = error
    return { kind, nothingWritten, message }
  }
}

/** `speed` divides all timeouts. */
export async function open(name: string, speed = 1): Promise<Outcome> {
  const clock: typeof systemClock = {
    now: () => systemClock.now(),
    schedule: (delayMs, callback) => systemClock.schedule(delayMs / speed, callback),
  }
  const opening = indexedDb(name).open({ clock, onLogChanged: () => {} })
  const outcome = await outcomeOf(opening)
  if (outcome.kind === 'done') session = await opening
  return outcome
}

export function close(): Promise<void> {
  return session.close()
}

export function put(value: number): Promise<Outcome> {
  return outcomeOf(session.commit([{ kind: 'put', collection: 'streams', key: 'a', value }]))
}

/** The value, undefined if there is none, or the failure. */
export async function get(): Promise<unknown> {
  let value: unknown
  const outcome = await outcomeOf(
    session.get('streams', 'a').then((document) => {
      value = document?.value
    }),
  )
  return outcome.kind === 'done' ? value : outcome
}

const databases: IDBDatabase[] = []

/** Records all connections opened from now on. */
export function watchConnections(): void {
  const original = IDBFactory.prototype.open
  IDBFactory.prototype.open = function (this: IDBFactory, ...args: Parameters<typeof original>) {
    const request = original.apply(this, args)
    request.addEventListener('success', () => databases.push(request.result))
    return request
  }
}

/** Closes all recorded connections as a browser does, with or without an event. Returns their number. */
export function dropConnections(withEvent: boolean): number {
  const dropped = databases.splice(0)
  for (const db of dropped) {
    db.close()
    if (withEvent) db.dispatchEvent(new Event('close'))
  }
  return dropped.length
}

/** Appends while connections are dropped repeatedly. Resolves to the stored sequence numbers. */
export async function appendWhileDropping(appends: number): Promise<number[]> {
  const logId = `log-${crypto.randomUUID()}`
  const writer = await LogWriter.create(session, logId)
  for (let i = 0; i < appends; i++) {
    const appending = [writer.append(), writer.append()]
    dropConnections(i % 2 === 0)
    await Promise.all(appending)
  }
  const blocks = await session.read(logId, WHOLE_LOG)
  checkRead(writer.written, WHOLE_LOG, blocks)
  return seqNumsOf(blocks)
}
