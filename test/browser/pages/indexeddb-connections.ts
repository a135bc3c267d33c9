import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { StorageFailure, systemClock } from '../../../src/index.ts'
import { seqNumsOf } from '../../../src/storage/conformance/blocks.ts'
import { LogWriter, WHOLE_LOG } from '../../../src/storage/conformance/log-writer.ts'
import { checkRead } from '../../../src/storage/conformance/read-oracle.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { type Fault, injectFaults } from '../../storage/indexeddb/faults.ts'
import { makeVersion1 } from '../../storage/indexeddb/version-1.ts'
import { checkVersion1 } from '../../storage/indexeddb/version-1-check.ts'

/** What came of something that may fail. */
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

/** `patience` divides how long others may be in the way. */
export async function open(name: string, patience = 1): Promise<Outcome> {
  const clock: typeof systemClock = {
    now: () => systemClock.now(),
    schedule: (delayMs, callback) => systemClock.schedule(delayMs / patience, callback),
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

/** The value, undefined when there is none, or what went wrong. */
export async function get(): Promise<unknown> {
  let value: unknown
  const outcome = await outcomeOf(
    session.get('streams', 'a').then((document) => {
      value = document?.value
    }),
  )
  return outcome.kind === 'done' ? value : outcome
}

export { makeVersion1 }

/** Throws when anything is missing. */
export function checkUpgraded(): Promise<void> {
  return checkVersion1(session)
}

/** Appends meet faults, one after another and together; what is told must be what is stored. */
export async function appendAmong(faults: readonly (Fault | undefined)[]): Promise<string[]> {
  const logId = `log-${crypto.randomUUID()}`
  const writer = await LogWriter.create(session, logId)
  await writer.append()
  injectFaults(faults)
  const outcomes = [await outcomeOf(writer.append({ count: 2 }))]
  outcomes.push(...(await Promise.all([writer.append(), writer.append()].map(outcomeOf))))
  injectFaults([])
  outcomes.push(await outcomeOf(writer.append({ count: 3 })))
  checkRead(writer.written, WHOLE_LOG, await session.read(logId, WHOLE_LOG))
  return outcomes.map(({ kind }) => kind)
}

const databases: IDBDatabase[] = []

/** Remembers the connections that are opened from now on. */
export function watchConnections(): void {
  const original = IDBFactory.prototype.open
  IDBFactory.prototype.open = function (this: IDBFactory, ...args: Parameters<typeof original>) {
    const request = original.apply(this, args)
    request.addEventListener('success', () => databases.push(request.result))
    return request
  }
}

/** Drops all connections as browsers do, and says so, or not. */
export function dropConnections(howToTell: 'by an event' | 'not at all'): number {
  const dropped = databases.splice(0)
  for (const db of dropped) {
    db.close()
    if (howToTell === 'by an event') db.dispatchEvent(new Event('close'))
  }
  return dropped.length
}

/** Appends while connections are dropped again and again; resolves to the sequence numbers that are stored. */
export async function appendWhileDropping(appends: number): Promise<number[]> {
  const logId = `log-${crypto.randomUUID()}`
  const writer = await LogWriter.create(session, logId)
  for (let i = 0; i < appends; i++) {
    const appending = [writer.append(), writer.append()]
    dropConnections(i % 2 === 0 ? 'by an event' : 'not at all')
    await Promise.all(appending)
  }
  const blocks = await session.read(logId, WHOLE_LOG)
  checkRead(writer.written, WHOLE_LOG, blocks)
  return seqNumsOf(blocks)
}
