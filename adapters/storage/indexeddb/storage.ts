import type { Observable } from 'rxjs'
import { invalid } from '../../../src/model/errors.ts'
import { assertOptions, type MembersOf, oneOf } from '../../../src/model/validation.ts'
import { contendForLock } from '../../../src/runtime/page-lock.ts'
import { appendedBytes } from '../../../src/storage/block-sizes.ts'
import type { Durability, Storage, StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import { KeyValueSession } from '../key-value/session.ts'
import { ChangeChannel, canBroadcast } from './change-channel.ts'
import { DatabaseConnection } from './connection.ts'
import { isQuotaFailure } from './failures.ts'
import { SpaceReserve } from './reserve.ts'
import { type LowSpace, measureUsage, persist, SpaceMonitor, type StorageUsage } from './space.ts'
import { IndexedDbStore } from './store.ts'

/** Options of `indexedDb`. */
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
    open: (context) => openSession({ name, durability, space }, context),
    lowSpace$: space.low$,
    usage: measureUsage,
    persist,
  }
}

interface DatabaseOptions {
  readonly name: string
  readonly durability: Durability
  readonly space: SpaceMonitor
}

/**
 * A session of the key-value storage, which also tells other tabs and the monitor of space what it writes.
 */
async function openSession(
  { name, durability, space }: DatabaseOptions,
  context: StorageContext,
): Promise<StorageSession> {
  // What is in use is read again, and ends if this version of the library cannot.
  const connection = new DatabaseConnection(name, context.clock, () => context.onHistoryChanged?.())
  await connection.open()
  const reserve = new SpaceReserve(connection)
  await reserve.allocate()
  const store = new IndexedDbStore(connection, reserve, durability === 'power-loss' ? 'strict' : 'relaxed')
  const session = new KeyValueSession(store, true)
  const channel = new ChangeChannel(name, context.clock, context.onLogChanged)
  const withdrawals = new Set<() => void>()
  let isClosed = false

  async function writing<Result>(call: Promise<Result>): Promise<Result> {
    try {
      return await call
    } catch (error) {
      if (isQuotaFailure(error)) space.recordFull()
      throw error
    }
  }

  return {
    get: (collection, key) => session.get(collection, key),
    list: (collection, range) => session.list(collection, range),
    head: (logId) => session.head(logId),
    read: (logId, range) => session.read(logId, range),
    measure: (logIds) => session.measure(logIds),
    reclaim: (limits) => writing(session.reclaim(limits)),
    isFull: () => session.isFull(),
    async commit(changes) {
      const logIds = changes.flatMap((change) => ('logId' in change ? [change.logId] : []))
      await writing(session.commit(changes))
      channel.announce(logIds)
    },
    async append(request) {
      await writing(session.append(request))
      channel.announce([request.logId])
      space.recordWritten(appendedBytes(request))
    },
    electForBackgroundWork(onElected) {
      if (isClosed) return () => {}
      const { locks } = globalThis.navigator ?? {}
      if (locks === undefined) {
        onElected(true)
        return () => {}
      }
      const end = contendForLock(locks, `headwater ${name} background`, onElected)
      const withdraw = () => {
        if (withdrawals.delete(withdraw)) end()
      }
      withdrawals.add(withdraw)
      return withdraw
    },
    async close() {
      isClosed = true
      for (const withdraw of withdrawals) withdraw()
      channel.mute()
      await session.close()
      channel.close()
    },
  }
}
