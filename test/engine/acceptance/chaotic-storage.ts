import { type AppendRequest, type Storage, StorageConflict, StorageFailure } from '../../../src/index.ts'
import { wrapped } from '../wrapped-storage.ts'

/** A turn of the event loop. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Numbers in [0, 1), the same for the same seed. */
export function prng(seed: number): () => number {
  let a = seed
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

export interface Chaos {
  on: boolean
}

/** Slow, ordered per log, and failing in every way that the contract allows. */
export function chaotic(inner: Storage, shared: boolean, random: () => number, chaos: Chaos): Storage {
  return wrapped(inner, { shared }, (session) => {
    const last = new Map<string, Promise<void>>()
    const pause = async () => {
      for (let n = Math.floor(random() * 3); n > 0; n--) await turn()
    }
    const make = async (request: AppendRequest) => {
      await pause()
      const dice = chaos.on ? random() : 1
      if (dice < 0.01) throw new StorageFailure('io', 'before', { nothingWritten: true })
      if (dice < 0.02) {
        await session.append(request)
        throw new StorageFailure('io', 'after', { nothingWritten: false })
      }
      if (dice < 0.03) {
        void (async () => {
          for (let n = Math.floor(random() * 6); n > 0; n--) await turn()
          await session.append(request).catch(() => {})
        })()
        throw new StorageFailure('io', 'late', { nothingWritten: false })
      }
      await session.append(request)
    }
    return {
      append(request) {
        const previous = last.get(request.logId) ?? Promise.resolve()
        const own = previous.then(() => make(request))
        const settled = own.catch(() => {})
        last.set(request.logId, settled)
        // Answers come late as well, in order.
        return own.finally(pause)
      },
      async head(logId) {
        await pause()
        if (chaos.on && random() < 0.01) throw new StorageFailure('io', 'head', { nothingWritten: true })
        const head = await session.head(logId)
        await pause()
        return head
      },
      async read(logId, range) {
        await pause()
        if (chaos.on && random() < 0.01) throw new StorageFailure('io', 'read', { nothingWritten: true })
        const blocks = await session.read(logId, range)
        await pause()
        return blocks
      },
      async commit(changes) {
        await pause()
        if (chaos.on && random() < 0.05) throw new StorageConflict('injected')
        await session.commit(changes)
        await pause()
      },
    }
  })
}
