import type { Stream } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { wrapped } from '../../support/wrapped-storage.ts'
import { overridden } from '../harness/overridden.ts'
import type { Sabotage } from './world.ts'

/** A defect shows in one of so many calls. */
const RARITY = 10

type Trigger = () => boolean
/** Defects count calls, so each run has its own. */
type Defect = () => Sabotage

function rarely(): Trigger {
  let calls = 0
  return () => ++calls % RARITY === 0
}

function onStorage(change: (session: StorageSession, triggers: Trigger) => Partial<StorageSession>): Defect {
  return () => ({ storage: (storage) => wrapped(storage, {}, (session) => change(session, rarely())) })
}

function onStream(change: (stream: Stream, triggers: Trigger) => Partial<Stream>): Defect {
  return () => {
    const triggers = rarely()
    return { stream: (stream) => overridden(stream, change(stream, triggers)) }
  }
}

/** Engines, storages and clients with a defect, each with a seed and a number of steps that find it. */
export const BROKEN_ENGINES: readonly (readonly [
  defect: string,
  seed: number,
  steps: number,
  sabotage: Defect,
])[] = [
  [
    'a storage that loses an append that it acknowledges',
    3,
    60,
    onStorage((session, triggers) => ({
      append: async (request) => {
        if (!triggers()) await session.append(request)
      },
    })),
  ],
  [
    'a storage that forgets trims',
    4,
    60,
    onStorage((session) => ({
      head: async (logId) => {
        const head = await session.head(logId)
        return head && { ...head, trimPoint: 0 }
      },
    })),
  ],
  [
    'a storage that forgets the producers of a log',
    66,
    120,
    onStorage((session, triggers) => ({
      head: async (logId) => {
        const head = await session.head(logId)
        if (head?.writeState === undefined || !triggers()) return head
        return { ...head, writeState: { ...head.writeState, producers: undefined } }
      },
    })),
  ],
  [
    'a storage that frees records before they expire',
    18,
    60,
    onStorage((session) => ({
      reclaim: (limits) => session.reclaim({ ...limits, now: limits.now + 3_600_000 }),
    })),
  ],
  ['engines that delete by their own clocks', 311, 400, () => ({ ignoresSharedClock: true })],
  [
    'a client that repeats an append of unknown outcome',
    8,
    60,
    onStream((stream) => ({
      append: (records, conditions) =>
        stream.append(records, conditions).catch(async (error) => {
          if (error.code === 'storage') await stream.append(records, conditions).catch(() => {})
          throw error
        }),
    })),
  ],
  [
    'a session that omits a batch',
    3,
    120,
    onStream((stream, triggers) => ({
      openCursor: async (...args) => {
        const cursor = await stream.openCursor(...args)
        const next = async () => {
          const event = await cursor!.next()
          return event?.kind === 'batch' && triggers() ? cursor!.next() : event
        }
        return cursor && overridden(cursor, { next })
      },
    })),
  ],
]
