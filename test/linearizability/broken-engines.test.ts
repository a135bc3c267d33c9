import { describe, expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Head, type Storage, StorageConflict, type StorageSession } from '../../src/index.ts'
import { Prng } from '../../src/storage/conformance/prng.ts'
import { wrapped } from '../engine/wrapped-storage.ts'
import { checkHistory } from './check-history.ts'
import { describeFinding } from './describe-finding.ts'
import { openEngines } from './engine-target.ts'
import { recordTarget } from './record-history.ts'
import type { AppendCall, StreamClient } from './stream-client.ts'
import type { OpenTarget } from './target.ts'

const SEEDS = [1, 2, 3, 4, 5]
/** How often it goes wrong. */
const PROBABILITY = 0.1

type Strikes = () => boolean

type OpenBroken = (strikes: Strikes) => Promise<OpenTarget>

/** A memory of which some calls do something else. */
function onStorage(
  engines: number,
  change: (session: StorageSession, strikes: Strikes) => Partial<StorageSession>,
): OpenBroken {
  return (strikes) => {
    const storage = wrapped(memory(), { notifications: 'none' }, (session) => change(session, strikes))
    // No word of what other engines do reaches one that is told lies.
    const open: Storage['open'] = (context) => storage.open({ ...context, onLogChanged: () => {} })
    return openEngines({ manifest: storage.manifest, open }, engines)
  }
}

/** A memory to which clients have a way of their own. */
function byClient(change: (client: StreamClient, strikes: Strikes) => Partial<StreamClient>): OpenBroken {
  return async (strikes) => {
    const target = await openEngines(memory(), 1)
    return {
      ...target,
      connect(stream, number) {
        const client = target.connect(stream, number)
        return {
          append: (call) => client.append(call),
          read: () => client.read(),
          checkTail: () => client.checkTail(),
          ...change(client, strikes),
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
    'a storage that tells a head of a while ago',
    onStorage(2, (session, strikes) => {
      const old = new Map<string, Head>()
      let calls = 0
      return {
        async head(logId) {
          if (old.has(logId) && strikes()) return old.get(logId)
          const head = await session.head(logId)
          if (head !== undefined && calls++ % 20 === 0) old.set(logId, head)
          return head
        },
      }
    }),
  ],
  [
    'a storage that says an append is stored, and stores nothing',
    onStorage(2, (session, strikes) => ({
      append: async (request) => {
        if (!strikes()) await session.append(request)
      },
    })),
  ],
  [
    'a storage that stores an append and says that it certainly did not',
    onStorage(1, (session, strikes) => ({
      append: async (request) => {
        await session.append(request)
        if (strikes()) throw new StorageConflict('a lie')
      },
    })),
  ],
  [
    'a client that makes an append again when it hears nothing of it',
    byClient((client, strikes) => ({
      append: async (call) => {
        if (strikes()) await client.append(call)
        return client.append(call)
      },
    })),
  ],
  [
    'a service that takes no notice of conditions',
    byClient((client, strikes) => ({
      append: (call) => client.append(strikes() ? withoutConditions(call) : call),
    })),
  ],
  [
    'a cache before the tail',
    byClient((client, strikes) => {
      let last = client.checkTail()
      return {
        checkTail: () => {
          if (strikes()) return last
          last = client.checkTail()
          return last
        },
      }
    }),
  ],
  [
    'a service that acknowledges what it does not store',
    byClient((client, strikes) => ({
      append: async (call) => {
        const { tail } = (await client.checkTail()) as { tail: number }
        const isPlain = call.matchSeqNum === undefined && call.fencingToken === undefined
        if (!isPlain || call.setFencingToken !== undefined || !strikes()) return client.append(call)
        const end = tail + call.bodies.length
        return { kind: 'appended', start: tail, end, tail: end }
      },
    })),
  ],
]

describe('found in what was recorded of', () => {
  it.each(BROKEN)('%s', async (_, openBroken) => {
    let found = 0
    for (const seed of SEEDS) {
      const prng = new Prng(seed)
      let struck = 0
      const strikes = () => {
        const isStruck = prng.chance(PROBABILITY)
        if (isStruck) struck++
        return isStruck
      }
      const target = await openBroken(strikes)
      const workload = { seed, streams: ['a'], clients: [0, 1, 2, 3, 4, 5], operationsPerClient: 60 }
      const finding = checkHistory(await recordTarget(target, workload))
      expect(struck).toBeGreaterThan(0)
      if (finding === undefined) continue
      expect(describeFinding(finding)).toContain('is not linearizable')
      found++
    }
    // An engine that is told a lie may find it out in time.
    expect(found).toBeGreaterThan(SEEDS.length / 2)
  })
})
