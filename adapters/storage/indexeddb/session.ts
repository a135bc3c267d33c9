import { trackExternalWork } from '../../../src/runtime/clock.ts'
import { appendedBytes } from '../../../src/storage/block-sizes.ts'
import type {
  Reclaimed,
  ReclaimLimits,
  StorageContext,
  StorageSession,
} from '../../../src/storage/contract.ts'
import { SessionCalls } from '../../../src/storage/session-calls.ts'
import { AppendWriter } from './append-writer.ts'
import { contendForBackgroundLock } from './background-lock.ts'
import { commitTransaction, getDocument, listDocuments } from './catalog.ts'
import { ChangeChannel } from './change-channel.ts'
import { choresUntil } from './chores.ts'
import { DatabaseConnection, type TransactionDurability } from './connection.ts'
import { loadHead, measureLogs, readLogRange } from './log-reader.ts'
import { isQuotaFailure, type SpaceMonitor, SpaceReserve } from './space.ts'

interface DatabaseOptions {
  readonly name: string
  readonly durability: TransactionDurability
  readonly space: SpaceMonitor
}

/** Frees what is due, with code that few pages need. */
async function reclaimPages(connection: DatabaseConnection, limits: ReclaimLimits): Promise<Reclaimed> {
  const { reclaimPages } = await trackExternalWork(import('./reclaim.ts'))
  return reclaimPages(connection, limits)
}

/** Opens one engine's access to a database. */
export async function openSession(
  { name, durability, space }: DatabaseOptions,
  { clock, onLogChanged, onHistoryChanged }: StorageContext,
): Promise<StorageSession> {
  // What is in use is read again, and ends if this version of the library cannot.
  const connection = new DatabaseConnection(name, clock, () => onHistoryChanged?.())
  await connection.open()
  const calls = new SessionCalls()
  const reserve = new SpaceReserve(connection)
  const channel = new ChangeChannel(name, clock, (logId) => {
    if (!calls.isClosed) onLogChanged(logId)
  })
  const writer = new AppendWriter(connection, reserve, durability, (requests) => {
    channel.announce(requests.map(({ logId }) => logId))
    space.recordWritten(requests.reduce((sum, request) => sum + appendedBytes(request), 0))
  })
  const withdrawals = new Set<() => void>()

  function run<Result>(work: () => Promise<Result>): Promise<Result> {
    const call = calls.run(work)
    call.catch((error) => {
      if (isQuotaFailure(error)) space.recordFull()
    })
    return call
  }

  void run(() => reserve.restore())
  return {
    get: (collection, key) => run(() => getDocument(connection, collection, key)),
    list: (collection, range) => run(() => listDocuments(connection, collection, range)),
    commit: (given) =>
      run(async () => {
        // The caller may modify the values while the documents are read.
        const changes = structuredClone(given)
        const work = () => commitTransaction(connection, durability, changes)
        const freesSpace = changes.some(({ kind }) => kind === 'delete' || kind === 'delete-log')
        await (freesSpace ? reserve.use(work) : work())
        channel.announce(changes.flatMap((change) => ('logId' in change ? [change.logId] : [])))
      }),
    head: (logId) => run(() => loadHead(connection, logId)),
    append: (request) => run(() => writer.append(request)),
    read: (logId, range) => run(() => readLogRange(connection, logId, range)),
    reclaim: (limits) =>
      run(async () => {
        const reclaimed = (await isReclaimDue(connection, limits))
          ? await reserve.use(() => reclaimPages(connection, limits))
          : { more: false, logIds: [] }
        if (reserve.isSpent) await reserve.restore()
        return reclaimed
      }),
    measure: (logIds) => run(() => measureLogs(connection, logIds)),
    isFull: () => reserve.isSpent,
    electForBackgroundWork(onElected) {
      if (calls.isClosed) return () => {}
      const end = contendForBackgroundLock(name, onElected)
      const withdraw = () => {
        if (withdrawals.delete(withdraw)) end()
      }
      withdrawals.add(withdraw)
      return withdraw
    },
    close() {
      for (const withdraw of withdrawals) withdraw()
      return calls.close(() => {
        channel.close()
        return connection.close()
      })
    },
  }
}

/**
 * Resolves to whether there may be something to free. Most runs of the engine find nothing: they lock no
 * store for writing.
 */
function isReclaimDue(
  connection: DatabaseConnection,
  { now, trimmedBefore }: ReclaimLimits,
): Promise<boolean> {
  return connection.run(async (db) => {
    const transaction = db.transaction(['pages', 'chores'])
    const chores = transaction.objectStore('chores')
    const due = await Promise.all([
      chores.getKey(choresUntil('deleted', 0)),
      chores.getKey(choresUntil('expired', now)),
      chores.getKey(choresUntil('trimmed', trimmedBefore)),
      transaction.objectStore('pages').index('by-expiry').getKey(IDBKeyRange.upperBound(now)),
    ])
    // The engine may close the database next, which open transactions would delay.
    await transaction.done
    return due.some((key) => key !== undefined)
  })
}
