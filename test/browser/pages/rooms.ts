import { connect } from '../../../adapters/client/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type SyncedBasin, syncedBasin } from '../../../adapters/sync/index.ts'
import { open as openEngine } from '../../../src/index.ts'

let rooms: SyncedBasin

/** Syncs the streams of a server that the page opens, over one connection. */
export async function start(url: string, database: string): Promise<void> {
  const server = await connect({ url })
  const hw = await openEngine({ storage: indexedDb(database) })
  const [remote, local] = [server.basin('my-first-app'), hw.basin('my-first-app')]
  rooms = await syncedBasin({ remote, local, prefix: 'rooms/', connectionsMax: 1, discoverMs: 1_000 })
}

export function open(name: string): void {
  rooms.stream(`rooms/${name}`)
}

export async function append(name: string, body: string): Promise<void> {
  await rooms.stream(`rooms/${name}`, { isBackground: true }).append(body)
}

/** The bodies on this device; those that wait for the server begin with an asterisk. */
export async function bodies(name: string): Promise<string[]> {
  const records = await rooms.stream(`rooms/${name}`, { isBackground: true }).read().toArray()
  return records.map(({ body, isPending }) => `${isPending ? '*' : ''}${body}`)
}

/** The kinds of the states of all streams, by name. */
export function kinds(): Record<string, string> {
  return Object.fromEntries(rooms.streams.map(({ name, state }) => [name.slice('rooms/'.length), state.kind]))
}

export async function close(): Promise<void> {
  await rooms.close()
}
