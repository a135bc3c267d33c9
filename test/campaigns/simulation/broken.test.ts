import { describe, expect, it } from 'vitest'
import type { ReadEvent, RecordCursor, Stream } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import { decodeRecords, encodeRecords } from '../../../src/storage/block-codec.ts'
import type { AppendRequest, Storage, StorageSession } from '../../../src/storage/contract.ts'
import { CONFIRMED_TIME_KEY } from '../../../src/storage/documents.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { wrapped } from '../../support/index.ts'
import { report } from './report.ts'
import { shorten } from './shorten.ts'
import { run } from './simulation.ts'
import type { Sabotage } from './world.ts'

/** A small number of seeds, each of which must detect the defect at least once. */
const SEEDS = 250
const STEPS = 300
/** The probability of the defect. */
const PROBABILITY = 0.1

type Trigger = () => boolean

function triggerOf(prng: Prng): Trigger {
  return () => prng.chance(PROBABILITY)
}

function onStorage(
  change: (session: StorageSession, triggers: Trigger) => Partial<StorageSession>,
): Sabotage {
  return { storage: (storage, prng) => wrapped(storage, {}, (session) => change(session, triggerOf(prng))) }
}

/** Appends that store something else. */
function withChangedAppends(change: (request: AppendRequest) => AppendRequest): Sabotage {
  return onStorage((session, triggers) => ({
    append: (request) => session.append(triggers() ? change(request) : request),
  }))
}

function onStream(change: (stream: Stream, triggers: Trigger) => Partial<Stream>): Sabotage {
  return { stream: (stream, prng) => overridden(stream, change(stream, triggerOf(prng))) }
}

/** Read sessions with some events replaced. */
function onCursor(
  change: (cursor: RecordCursor, event: ReadEvent | undefined) => Promise<ReadEvent | undefined>,
): Sabotage {
  return onStream((stream, triggers) => ({
    openCursor: async (...args) => {
      const cursor = await stream.openCursor(...args)
      if (cursor === undefined) return undefined
      const next = async () => {
        const event = await cursor.next()
        return event?.kind === 'batch' && triggers() ? change(cursor, event) : event
      }
      return overridden(cursor, { next })
    },
  }))
}

function overridden<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get: (_, property: keyof Target & string) => {
      const value = own[property] ?? target[property]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Repeats the first batch of a session. */
function repeatsFirstBatch(): Sabotage {
  const delivered = new WeakMap<RecordCursor, ReadEvent>()
  return onCursor(async (cursor, event) => {
    const before = delivered.get(cursor)
    if (event !== undefined) delivered.set(cursor, event)
    return before ?? event
  })
}

function withoutNotifications(storage: Storage): Storage {
  return {
    manifest: storage.manifest,
    open: (context) => storage.open({ ...context, onLogChanged: () => {} }),
  }
}

const BROKEN: readonly [string, expected: RegExp, Sabotage][] = [
  [
    'a storage that loses an append that it acknowledges',
    /is acknowledged when it is stored|contains a tail of the stream/,
    onStorage((session, triggers) => ({
      append: async (request) => {
        if (!triggers()) await session.append(request)
      },
    })),
  ],
  [
    'a storage that skips a sequence number',
    /the next record has the sequence number/,
    withChangedAppends(({ block, head, ...request }) => {
      const records = decodeRecords(block.data).map((record) => ({ ...record, seqNum: record.seqNum + 1 }))
      const ends = { endSeqNum: block.endSeqNum + 1 }
      const tail = { ...head.tail, seqNum: head.tail.seqNum + 1 }
      return {
        ...request,
        block: { ...block, ...ends, data: encodeRecords(records) },
        head: { ...head, tail },
      }
    }),
  ],
  [
    'a storage whose timestamps go back',
    /has a timestamp from/,
    withChangedAppends(({ block, ...request }) => {
      const records = decodeRecords(block.data).map((record) => ({ ...record, timestamp: 1 }))
      return { ...request, block: { ...block, data: encodeRecords(records) } }
    }),
  ],
  [
    'a storage that keeps a part of a batch',
    /is stored whole|the metadata of the block/,
    withChangedAppends(({ block, ...request }) => {
      const records = decodeRecords(block.data)
      return { ...request, block: { ...block, data: encodeRecords(records.slice(0, -1)) } }
    }),
  ],
  [
    'a storage that stores an append and says that it certainly did not',
    /is stored once|leaves no trace/,
    onStorage((session, triggers) => ({
      append: async (request) => {
        await session.append(request)
        if (triggers()) throw new StorageConflict('a lie')
      },
    })),
  ],
  [
    'a storage that forgets trims',
    /delivers every record once and in order|returns the stored records|the head of/,
    onStorage((session) => ({
      head: async (logId) => {
        const head = await session.head(logId)
        return head && { ...head, trimPoint: 0 }
      },
    })),
  ],
  [
    'a storage that frees records before their expiry or trim grace',
    /record \d+ is there/,
    onStorage((session) => ({
      reclaim: ({ now, trimmedBefore, blocksMax }) =>
        session.reclaim({ now: now + 3_600_000, trimmedBefore: trimmedBefore + 3_600_000, blocksMax }),
    })),
  ],
  [
    'engines that ignore the clock of the storage',
    /record \d+ is there|has no request for its deletion/,
    { ignoresSharedClock: true },
  ],
  [
    'an engine that deletes by a clock that leaps',
    /record \d+ is there|has no request for its deletion/,
    onStorage((session) => {
      let version = 0
      return {
        get: async (collection, key) =>
          key === CONFIRMED_TIME_KEY
            ? { key, value: { at: Number.MAX_SAFE_INTEGER, stepAt: null }, version: ++version }
            : session.get(collection, key),
      }
    }),
  ],
  [
    'a storage that promises notifications and sends none',
    /no actor waits forever/,
    { storage: withoutNotifications },
  ],
  [
    'a service that never settles an append',
    /no actor waits forever|every call settles/,
    onStream((stream, triggers) => ({
      append: (...args) => {
        const acked = stream.append(...args)
        if (!triggers()) return acked
        acked.catch(() => {})
        return new Promise(() => {})
      },
    })),
  ],
  [
    'a service that stores rejected appends',
    /is stored only when its conditions hold|leaves no trace|is not stored any more/,
    onStream((stream) => ({
      append: (records, conditions) =>
        stream.append(records, conditions).catch(async (error) => {
          if (error.code.endsWith('_mismatch')) await stream.append(records)
          throw error
        }),
    })),
  ],
  [
    'a client that retries an append of unknown outcome',
    /is stored once|leaves no trace/,
    onStream((stream) => ({
      append: (records, conditions) =>
        stream.append(records, conditions).catch(async (error) => {
          if (error.code === 'storage') await stream.append(records, conditions).catch(() => {})
          throw error
        }),
    })),
  ],
  [
    'a service that ignores conditions',
    /is stored only when its conditions hold/,
    onStream((stream, triggers) => ({
      append: (records, conditions) => stream.append(records, triggers() ? {} : conditions),
    })),
  ],
  [
    'a service that rejects valid appends',
    /is refused only when a condition does not hold/,
    onStream((stream, triggers) => ({
      append: (records, conditions) => stream.append(records, triggers() ? { matchSeqNum: 999 } : conditions),
    })),
  ],
  [
    'a cache in front of the tail',
    /a tail check returns the tail|only when there is no stream|only when the storage fails/,
    (() => {
      const tails = new Map<string, ReturnType<Stream['checkTail']>>()
      return onStream((stream) => ({
        checkTail: () => {
          const tail = tails.get(stream.name) ?? stream.checkTail()
          tails.set(stream.name, tail)
          return tail
        },
      }))
    })(),
  ],
  ['a session that repeats a batch', /delivers every record once and in order/, repeatsFirstBatch()],
  [
    'a session that omits a batch',
    /delivers every record once and in order|no actor waits forever|ends at a bound/,
    onCursor(async (cursor) => cursor.next()),
  ],
  [
    'a session that ends too early',
    /ends at a bound, or when it has waited/,
    onCursor(async () => undefined),
  ],
]

describe('the checks detect', () => {
  it.each(BROKEN)('%s', { timeout: 300_000 }, async (_, expected, sabotage) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const options = { seed, steps: STEPS, sabotage }
      const result = await run(options)
      if (result.violation === undefined) continue
      expect(result.violation.expected).toMatch(expected)
      const shortened = await shorten(options, result)
      expect(shortened.violation).toBeDefined()
      expect(shortened.steps).toBeLessThanOrEqual(result.steps)
      const text = report(shortened)
      expect(text).toContain(`npm run sim -- --seed ${seed} --steps ${shortened.steps}`)
      return
    }
    expect.fail(`${SEEDS} seeds did not find it`)
  })
})
