import { connect } from '../../../adapters/client/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Mirror, mirror } from '../../../adapters/sync/index.ts'
import { open } from '../../../src/index.ts'

let copy: Mirror

/** Mirrors a stream of a server into a database. */
export async function start(url: string, database: string): Promise<void> {
  const server = await connect({ url })
  const hw = await open({ storage: indexedDb(database) })
  copy = mirror(server.basin('my-first-app').stream('s'), hw.basin('my-first-app').stream('s'))
}

export function kind(): string {
  return copy.state.kind
}

/** The records of the copy. */
export async function bodies(): Promise<string[]> {
  const records = await copy.local.read().toArray()
  return records.map(({ body }) => body)
}

export async function close(): Promise<void> {
  await copy.close()
}
