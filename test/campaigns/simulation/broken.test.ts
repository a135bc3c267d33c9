// @module-tag nightly

import { describe, it } from 'vitest'
import type { ReadEvent, RecordCursor, Stream } from '../../../src/index.ts'
import { decodeRecords, encodeRecords } from '../../../src/storage/block-codec.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { CONFIRMED_TIME_KEY } from '../../../src/storage/documents.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { type Defect, expectFound, onCursor, onStorage, onStream, withChangedAppends } from './sabotage.ts'
import type { Sabotage } from './world.ts'

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

const BROKEN: readonly Defect[] = [
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
    /has a timestamp from|the metadata of the block/,
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
      append: (records, { producer, streamSeq, ...conditions } = {}) =>
        stream.append(records, { producer, streamSeq, ...(triggers() ? {} : conditions) }),
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
  ['a session that ends too early', /ends at a bound, when it has waited/, onCursor(async () => undefined)],
]

describe('the checks detect', () => {
  it.each(BROKEN)('%s', { timeout: 300_000 }, (_, expected, sabotage) => expectFound(expected, sabotage))
})
