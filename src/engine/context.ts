import type { SharedSignal } from '../runtime/abort.ts'
import type { Storage, StorageContext, StorageSession } from '../storage/contract.ts'
import { StorageConflict, StorageFailure } from '../storage/errors.ts'
import { fromStorage } from './errors.ts'
import type { EngineSettings } from './options.ts'
import type { UsageMeter } from './usage.ts'

/** The settings of an engine with its storage opened, which all of its parts share. */
export interface EngineContext extends Omit<EngineSettings, 'storage' | 'usage'> {
  /** Rejects with `HeadwaterError`, or `StorageConflict` for a condition that does not hold. */
  readonly session: StorageSession
  readonly usage: UsageMeter
  /** Aborts with `closed` when the engine begins to close. */
  readonly closing: SharedSignal
}

/**
 * Opens the storage. Calls of the session reject with `HeadwaterError`: `storage` for a failure,
 * `closed` after `close`. Conflicts pass through.
 */
export async function acquireSession(storage: Storage, context: StorageContext): Promise<StorageSession> {
  try {
    return mapStorageErrors(await storage.open(context))
  } catch (error) {
    if (!StorageFailure.is(error)) throw error
    throw fromStorage(error, `the storage cannot be opened: ${error.message}`)
  }
}

function mapStorageErrors(session: StorageSession): StorageSession {
  type Call<Args extends unknown[], Result> = (...args: Args) => Promise<Result>
  const mapped = <Args extends unknown[], Result>(call: Call<Args, Result>): Call<Args, Result> => {
    return (...args) => call.apply(session, args).catch(throwMapped)
  }
  const { now, check, isFull, isExclusive, clockOffsetMs, electForBackgroundWork } = session
  return {
    get: mapped(session.get),
    list: mapped(session.list),
    commit: mapped(session.commit),
    // Its only caller, the pipeline, maps errors: one promise less for every append.
    append: session.append.bind(session),
    head: mapped(session.head),
    read: mapped(session.read),
    reclaim: mapped(session.reclaim),
    measure: mapped(session.measure),
    close: mapped(session.close),
    ...(now && { now: mapped(now) }),
    ...(check && { check: mapped(check) }),
    ...(isFull && { isFull: isFull.bind(session) }),
    ...(isExclusive && { isExclusive: isExclusive.bind(session) }),
    ...(clockOffsetMs && { clockOffsetMs: clockOffsetMs.bind(session) }),
    ...(electForBackgroundWork && { electForBackgroundWork: electForBackgroundWork.bind(session) }),
  }
}

function throwMapped(failure: unknown): never {
  throw StorageConflict.is(failure) ? failure : fromStorage(failure)
}
