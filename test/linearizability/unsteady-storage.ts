import { macrotask } from '../../src/engine/macrotask.ts'
import { type AppendRequest, type Storage, StorageFailure, type StorageSession } from '../../src/index.ts'
import type { Prng } from '../../src/storage/conformance/prng.ts'

/** What may go wrong with an append: each reports a failure. */
export type AppendFault = 'not written' | 'written' | 'written later' | 'never written'

export interface Unsteadiness {
  readonly prng: Prng
  /** How many turns of the event loop an answer may be late. */
  readonly turnsMax: number
  /** The probability of each fault of an append. */
  readonly faults?: Partial<Readonly<Record<AppendFault, number>>>
}

/**
 * A storage that answers when it likes, and of which some appends fail: with nothing written, or with an outcome that nobody can know, after the
 * block was written, before it is, or without. All of this the contract permits.
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
        // At once, for appends to one log take effect in the order of the calls.
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
  const later = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    await pause()
    const answer = await call()
    await pause()
    return answer
  }
  return {
    get: (collection, key) => later(() => session.get(collection, key)),
    list: (collection, range) => later(() => session.list(collection, range)),
    commit: (changes) => later(() => session.commit(changes)),
    head: (logId) => later(() => session.head(logId)),
    append: (request) => session.append(request),
    read: (logId, range) => later(() => session.read(logId, range)),
    reclaim: (limits) => later(() => session.reclaim(limits)),
    measure: (logIds) => later(() => session.measure(logIds)),
    close: () => session.close(),
  }
}
