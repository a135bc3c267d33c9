import { connect } from '../../../adapters/client/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type SyncedRecord, type SyncedStream, syncedStream } from '../../../adapters/sync/index.ts'
import { open } from '../../../src/index.ts'

let stream: SyncedStream
/** The list as a page shows it: every change of the view was applied. */
const rows: SyncedRecord[] = []
const violations: string[] = []

/** Syncs a stream of a server with a database, and shows it as a list. */
export async function start(url: string, database: string): Promise<void> {
  const server = await connect({ url })
  const hw = await open({ storage: indexedDb(database) })
  stream = syncedStream(server.basin('my-first-app').stream('s'), hw.basin('my-first-app').stream('s'))
  stream.view$.subscribe(({ change, length }) => {
    const before = rows.map(({ key }) => key)
    rows.splice(change.index, change.removed, ...change.inserted)
    const keys = new Set(rows.map(({ key }) => key))
    if (keys.size < rows.length) violations.push(`twice: ${rows.map(({ body }) => body)}`)
    // A new beginning of the copy shows an empty view first.
    const lost = length === 0 ? [] : before.filter((key) => !keys.has(key))
    if (lost.length > 0) violations.push(`gone: ${lost}`)
  })
}

/** Appends one record after another. Resolves when all are durable on this device. */
export async function append(bodies: readonly string[]): Promise<void> {
  for (const body of bodies) {
    await stream.append(body)
    console.log(`durable: ${body}`)
  }
}

/** The bodies that are shown; those that wait for the server begin with an asterisk. */
export function shown(): string[] {
  return rows.map(({ body, isPending }) => `${isPending ? '*' : ''}${body}`)
}

/** What a list must not do: records that were shown twice, or disappeared. */
export function misbehaviour(): string[] {
  return violations
}

/** Resolves when everything is on the server. */
export async function flush(): Promise<void> {
  await stream.outbox.flush()
}
