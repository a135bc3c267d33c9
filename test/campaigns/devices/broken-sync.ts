import type { Stream } from '../../../src/index.ts'
import { wrapped } from '../../support/wrapped-storage.ts'
import { overridden } from '../harness/overridden.ts'
import type { Sabotage } from './device.ts'

/** A defect shows in one of so many calls. */
const RARITY = 3

function rarely(): () => boolean {
  let calls = 0
  return () => ++calls % RARITY === 0
}

/** Defects count calls, so each run has its own. */
type Defect = () => Sabotage

/** Outboxes, mirrors and servers with a defect, each with a seed that finds it. */
export const BROKEN_SYNC: readonly (readonly [defect: string, seed: number, sabotage: Defect])[] = [
  [
    'an outbox that sends without a condition',
    25,
    () => ({
      remote: (remote) => overridden(remote, { append: (records) => remote.append(records) }),
    }),
  ],
  [
    'a device that acknowledges an append and loses it',
    1,
    () => ({
      synced: (synced) => {
        const append = synced.append.bind(synced)
        const triggers = rarely()
        const lost = async () => ({ number: 0, confirmed: () => new Promise(() => {}) })
        synced.append = ((...args: Parameters<typeof append>) =>
          triggers() ? lost() : append(...args)) as unknown as typeof append
      },
    }),
  ],
  [
    'a mirror that changes records',
    1,
    () => ({
      remote: (remote) => {
        const openCursor: Stream['openCursor'] = async (...args) => {
          const cursor = await remote.openCursor(...args)
          if (cursor === undefined) return undefined
          const next = async () => {
            const event = await cursor.next()
            if (event?.kind !== 'batch') return event
            const records = event.batch.records.map((record) => ({
              ...record,
              timestamp: record.timestamp + 1,
            }))
            return { ...event, batch: overridden(event.batch, { records }) }
          }
          return overridden(cursor, { next })
        }
        return overridden(remote, { openCursor })
      },
    }),
  ],
  [
    'a server that loses what it acknowledges',
    1,
    () => ({
      storage: (storage) => {
        const triggers = rarely()
        return wrapped(storage, {}, (session) => ({
          append: async (request) => {
            if (!triggers()) await session.append(request)
          },
        }))
      },
    }),
  ],
]
