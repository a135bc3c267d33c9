import type { Observable } from 'rxjs'
import type { Storage } from '../../../src/storage/contract.ts'
import { canAnnounce } from './announcements.ts'
import { loadRest } from './load-rest.ts'
import { IndexedDbSession } from './session.ts'
import type { LowSpace, StorageUsage } from './space.ts'
import { SpaceWatch } from './space-watch.ts'
import type { Durability } from './transactions.ts'

export interface IndexedDbOptions {
  /**
   * What an append has survived when it resolves: `strict` a power loss, `relaxed` the end of the browser, but perhaps not that of the
   * machine. `strict` by default; browsers would take `relaxed`.
   */
  readonly durability?: Durability
  /** The used share of the quota, in (0, 1], from which on space is low; 0.8 by default. */
  readonly lowSpaceShare?: number
}

/** A storage in IndexedDB, and what there is to know of the space for it. */
export interface IndexedDbStorage extends Storage {
  /** Of the database. */
  readonly name: string
  /**
   * Tells that space is low: before the quota is hit, where the browser tells the quota, and when an append was refused for it. The first look is
   * taken when somebody subscribes, further ones as more is written by this storage object. Never ends.
   */
  readonly lowSpace$: Observable<LowSpace>
  /** What is used of the space for this origin. */
  usage(): Promise<StorageUsage>
  /** Asks the browser, which may ask the user, not to delete the data by itself. Resolves to whether it promises; false in workers. */
  persist(): Promise<boolean>
}

/**
 * A storage in the database of that name, which all tabs and workers of the origin may have open at once. Costs nothing before it is opened.
 * Errors: `RangeError` for a share that makes no sense.
 *
 * What is appended is there until the browser runs out of space and deletes the data of origins that were not used for long, unless `persist` made it
 * promise not to; and until the user deletes it. Private windows forget it when the last of them is closed.
 */
export function indexedDb(name: string, options: IndexedDbOptions = {}): IndexedDbStorage {
  const { durability = 'strict', lowSpaceShare = 0.8 } = options
  if (!(lowSpaceShare > 0 && lowSpaceShare <= 1)) {
    throw new RangeError(`lowSpaceShare must be in (0, 1], not ${lowSpaceShare}`)
  }
  const space = new SpaceWatch(lowSpaceShare)
  return {
    name,
    manifest: {
      name: 'indexeddb',
      durability: durability === 'strict' ? 'power-loss' : 'process-crash',
      shared: true,
      notifications: canAnnounce() ? 'hint' : 'none',
    },
    open: (context) => IndexedDbSession.open({ name, durability, space }, context),
    lowSpace$: space.low$,
    usage: async () => (await loadRest()).measureUsage(),
    persist: async () => (await loadRest()).persist(),
  }
}
