import { macrotask } from '../../../../src/runtime/macrotask.ts'
import type { Prng } from '../../../../src/runtime/prng.ts'
import {
  type AppendRequest,
  type Storage,
  StorageFailure,
  type StorageSession,
} from '../../../../src/storage/index.ts'

/** Faults of an append. Each reports a failure. */
export type AppendFault = 'not written' | 'written' | 'written later' | 'never written'

export interface Unsteadiness {
  readonly prng: Prng
  /** The largest delay of a result, in turns of the event loop. */
  readonly turnsMax: number
  /** The probability of each fault of an append. */
  readonly faults?: Partial<Readonly<Record<AppendFault, number>>>
}

/**
 * A storage with delayed results, some of whose appends fail: with nothing written, or with an unknown
 * outcome, in which the block is written before the failure, after it, or never. The storage contract permits
 * all of this.
 */
export function unsteady(storage: Storage, { prng, turnsMax, faults = {} }: Unsteadiness): Storage {
  const pause = async () => {
    for (let turns = prng.below(turnsMax + 1); turns > 0; turns--) await macrotask()
  }
  const drawFault = (): AppendFault | undefined => {
    let rest = prng.next()
    return (Object.keys(faults) as AppendFault[]).find((fault) => {
      rest -= faults[fault]!
      return rest < 0
    })
  }
  return {
    manifest: storage.manifest,
    async open(context) {
      const session = await storage.open(context)
      const late = new Set<Promise<void>>()
      const append = async (request: AppendRequest): Promise<void> => {
        const fault = drawFault()
        // Begins at once, because appends to one log take effect in the order of the calls.
        const writing = fault === undefined || fault === 'written' ? session.append(request) : undefined
        writing?.catch(() => {})
        await pause()
        await writing
        if (fault === undefined) return
        if (fault === 'written later') {
          const lateWrite = pause()
            .then(() => session.append(request))
            .catch(() => {})
            .then(() => void late.delete(lateWrite))
          late.add(lateWrite)
        }
        throw new StorageFailure('io', `unsteady: ${fault}`, { nothingWritten: fault === 'not written' })
      }
      const close = async () => {
        await Promise.all(late)
        await session.close()
      }
      return { ...answeringLate(session, pause), append, close }
    },
  }
}

function answeringLate(session: StorageSession, pause: () => Promise<void>): StorageSession {
  const delayed = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    await pause()
    const answer = await call()
    await pause()
    return answer
  }
  return {
    get: (collection, key) => delayed(() => session.get(collection, key)),
    list: (collection, range) => delayed(() => session.list(collection, range)),
    commit: (changes) => delayed(() => session.commit(changes)),
    head: (logId) => delayed(() => session.head(logId)),
    append: (request) => session.append(request),
    read: (logId, range) => delayed(() => session.read(logId, range)),
    reclaim: (limits) => delayed(() => session.reclaim(limits)),
    measure: (logIds) => delayed(() => session.measure(logIds)),
    close: () => session.close(),
  }
}
