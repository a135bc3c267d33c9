import { LazyModule } from '../../src/runtime/lazy-module.ts'
import type { SyncedBasin } from './synced-basin.ts'
import type { SyncedBasinOptions } from './synced-basin-options.ts'

export type { SyncedBasin } from './synced-basin.ts'

const BASINS = new LazyModule('synced basins', () => import('./synced-basin.ts'))

/**
 * Syncs all streams of a basin below a prefix: those that this device knows, and those that other devices
 * create. The most recently used ones follow the server, within a number of connections; the others are
 * caught up with, and what waits in them is sent, in turn. Resolves when the streams that this device knows
 * are listed; connects in the background: see `state`.
 *
 * Errors:
 * - `invalid` for options that are not valid
 * - `storage`, `storage_full` when the local storage fails
 * - `unavailable` when the code of this function, which is loaded on its first call, cannot be loaded
 *
 * ```ts
 * const server = await connect({ url: 'https://streams.example' })
 * const hw = await open({ storage: indexedDb('my-app') })
 * const [remote, local] = [server.basin('my-app'), hw.basin('my-app')]
 * const rooms = await syncedBasin({ remote, local, prefix: 'rooms/' })
 * rooms.streams$.subscribe((streams) => console.log(streams.map(({ name }) => name)))
 * await rooms.stream('rooms/general').append('hello')
 * ```
 */
export async function syncedBasin(options: SyncedBasinOptions): Promise<SyncedBasin> {
  const { openSyncedBasin } = await BASINS.load()
  return openSyncedBasin(options)
}
