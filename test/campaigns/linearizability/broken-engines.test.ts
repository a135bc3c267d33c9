// @module-tag nightly

import { describe, expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { Head, Storage, StorageSession } from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { wrapped } from '../../support/index.ts'
import { checkHistory } from './check-history.ts'
import { describeFinding } from './describe-finding.ts'
import { openEngines } from './engine-target.ts'
import { recordTarget } from './record-history.ts'
import type { AppendCall, OpenTarget, StreamClient } from './stream-client.ts'

const SEEDS = [1, 2, 3, 4, 5]
/** The probability of the defect. */
const PROBABILITY = 0.1

type Trigger = () => boolean

type OpenBroken = (triggers: Trigger) => Promise<OpenTarget>

/** A memory storage with some calls replaced. */
function onStorage(
  engines: number,
  change: (session: StorageSession, triggers: Trigger) => Partial<StorageSession>,
): OpenBroken {
  return (triggers) => {
    const storage = wrapped(memory(), { notifications: 'none' }, (session) => change(session, triggers))
    // No notifications of other engines, which would reveal the defect.
    const open: Storage['open'] = (context) => storage.open({ ...context, onLogChanged: () => {} })
    return openEngines({ manifest: storage.manifest, open }, engines)
  }
}

/** A memory storage with replaced clients. */
function byClient(change: (client: StreamClient, triggers: Trigger) => Partial<StreamClient>): OpenBroken {
  return async (triggers) => {
    const target = await openEngines(memory(), 1)
    return {
      ...target,
      connect(stream, number) {
        const client = target.connect(stream, number)
        return {
          append: (call) => client.append(call),
          read: () => client.read(),
          checkTail: () => client.checkTail(),
          ...change(client, triggers),
        }
      },
    }
  }
}

function withoutConditions({ matchSeqNum: _, fencingToken: __, ...call }: AppendCall): AppendCall {
  return call
}

const BROKEN: readonly [string, OpenBroken][] = [
  [
    'a storage that returns an outdated head',
    onStorage(2, (session, triggers) => {
      const old = new Map<string, Head>()
      let calls = 0
      return {
        async head(logId) {
          if (old.has(logId) && triggers()) return old.get(logId)
          const head = await session.head(logId)
          if (head !== undefined && calls++ % 5 === 0) old.set(logId, head)
          return head
        },
      }
    }),
  ],
  [
    'a storage that acknowledges an append without storing it',
    onStorage(2, (session, triggers) => ({
      append: async (request) => {
        if (!triggers()) await session.append(request)
      },
    })),
  ],
  [
    'a storage that stores an append and reports that it did not',
    onStorage(1, (session, triggers) => ({
      append: async (request) => {
        await session.append(request)
        if (triggers()) throw new StorageConflict('a lie')
      },
    })),
  ],
  [
    'a client that retries an append of unknown outcome',
    byClient((client, triggers) => ({
      append: async (call) => {
        if (triggers()) await client.append(call)
        return client.append(call)
      },
    })),
  ],
  [
    'a service that ignores conditions',
    byClient((client, triggers) => ({
      append: (call) => client.append(triggers() ? withoutConditions(call) : call),
    })),
  ],
  [
    'a cache in front of the tail',
    byClient((client, triggers) => {
      let last = client.checkTail()
      return {
        checkTail: () => {
          if (triggers()) return last
          last = client.checkTail()
          return last
        },
      }
    }),
  ],
  [
    'a service that acknowledges appends that it does not store',
    byClient((client, triggers) => ({
      append: async (call) => {
        const { tail } = (await client.checkTail()) as { tail: number }
        const isPlain = call.matchSeqNum === undefined && call.fencingToken === undefined
        if (!isPlain || call.setFencingToken !== undefined || !triggers()) return client.append(call)
        const end = tail + call.bodies.length
        return { kind: 'appended', start: tail, end, tail: end }
      },
    })),
  ],
]

describe('the checker detects', () => {
  it.each(BROKEN)('%s', async (_, openBroken) => {
    let found = 0
    for (const seed of SEEDS) {
      const prng = new Prng(seed)
      let triggered = 0
      const triggers = () => {
        const isStruck = prng.chance(PROBABILITY)
        if (isStruck) triggered++
        return isStruck
      }
      const target = await openBroken(triggers)
      const workload = { seed, streams: ['a'], clients: [0, 1, 2, 3, 4, 5], operationsPerClient: 60 }
      const history = await recordTarget(target, workload).catch((error: Error) => error)
      expect(triggered).toBeGreaterThan(0)
      if (history instanceof Error) {
        // The recorder checks the order within a session.
        expect(history.message).toMatch(/^a session (put|acknowledged) /)
        found++
        continue
      }
      const finding = checkHistory(history)
      if (finding === undefined) continue
      expect(describeFinding(finding)).toContain('is not linearizable')
      found++
    }
    // An engine may detect a defect of its storage in time.
    expect(found).toBeGreaterThan(SEEDS.length / 4)
  })
})
