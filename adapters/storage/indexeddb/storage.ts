import type { Observable } from 'rxjs'
import { invalid } from '../../../src/model/errors.ts'
import { assertOptions, type MembersOf, oneOf } from '../../../src/model/validation.ts'
import type { Durability, Storage } from '../../../src/storage/contract.ts'
import { canBroadcast } from './change-channel.ts'
import { openSession } from './session.ts'
import { type LowSpace, measureUsage, persist, SpaceMonitor, type StorageUsage } from './space.ts'

/**
 * Options of `indexedDb`.
 *
 * ```ts
 * const storage = indexedDb('my-app', { durability: 'process-crash', lowSpaceShare: 0.1 })
 * storage.lowSpace$.subscribe(({ isFull, writtenBytes, usedBytes, quotaBytes, persisted }) => {
 *   console.log(storage.name, isFull, writtenBytes, usedBytes, quotaBytes, persisted)
 * })
 * ```
 */
export interface IndexedDbOptions {
  /**
   * The failure that a resolved append survives: power loss, or only a crash of the browser (`process-crash`,
   * faster). `power-loss` by default.
   */
  readonly durability?: Durability | undefined
  /** The share of the quota, in (0, 1], above which space counts as low. 0.8 by default. */
  readonly lowSpaceShare?: number | undefined
}

const INDEXED_DB_OPTIONS: MembersOf<IndexedDbOptions> = {
  durability: oneOf(['power-loss', 'process-crash']),
  lowSpaceShare: 'number',
}

/** A storage in IndexedDB that also reports its use of space. */
export interface IndexedDbStorage extends Storage {
  /** The name of the database. */
  readonly name: string
  /**
   * Emits when space is low: before the quota is hit, where the browser reports it, and when an append was
   * rejected for lack of space. Measures on subscription, and again as this storage object writes more. Never
   * completes.
   */
  readonly lowSpace$: Observable<LowSpace>
  /** Returns the browser's report on the space of this origin. */
  usage(): Promise<StorageUsage>
  /**
   * Asks the browser, which may ask the user, not to delete the data under storage pressure. Resolves to
   * whether it agreed; false in workers.
   */
  persist(): Promise<boolean>
}

/**
 * Creates a storage in the named IndexedDB database. Any number of tabs and workers of the origin can open it
 * at once. Does nothing until it is opened.
 *
 * ```ts
 * const storage = indexedDb('my-app')
 * const hw = await open({ storage })
 * if (!(await storage.persist())) console.warn('the browser may delete the data')
 * ```
 *
 * The browser may delete the data of an origin that was not used recently when the device runs out of space,
 * unless `persist` succeeded. Private windows lose it when the last of them closes.
 *
 * Throws `invalid` for invalid options.
 */
export function indexedDb(name: string, options: IndexedDbOptions = {}): IndexedDbStorage {
  assertOptions(options, INDEXED_DB_OPTIONS)
  if (typeof name !== 'string') throw invalid('indexedDb needs the name of a database', 'name')
  const { durability = 'power-loss', lowSpaceShare = 0.8 } = options
  if (!(lowSpaceShare > 0 && lowSpaceShare <= 1)) {
    throw invalid(`lowSpaceShare is ${lowSpaceShare}; expected a number in (0, 1]`, 'lowSpaceShare')
  }
  const space = new SpaceMonitor(lowSpaceShare)
  return {
    name,
    manifest: {
      name: 'indexeddb',
      durability,
      shared: true,
      notifications: canBroadcast() ? 'hint' : 'none',
    },
    open: (context) =>
      openSession({ name, durability: durability === 'power-loss' ? 'strict' : 'relaxed', space }, context),
    lowSpace$: space.low$,
    usage: measureUsage,
    persist,
  }
}
