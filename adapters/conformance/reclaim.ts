import type { ReclaimLimits, StorageSession } from '../../src/storage/contract.ts'
import { type ConformanceCase, conflicts, equal, ok } from './harness.ts'
import { FAR, LogWriter, NOW, range, seqNumsOf, unmergeableExpiry, WHOLE_LOG } from './log-writer.ts'
import { checkRead } from './model.ts'

const NOTHING: ReclaimLimits = { now: 0, trimmedBefore: 0, blocksMax: 1000 }
/** More calls than any test needs: stops a storage that always reports more. */
const CALLS_MAX = 1000

export const reclaimCases: readonly ConformanceCase[] = [
  {
    title: 'reclaim reports nothing left if there is nothing to free',
    async run(harness) {
      const session = await harness.open()
      await reclaimAll(session, NOTHING)
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ count: 3 })
      await writer.append({ count: 3, expiresAt: FAR })
      await reclaimAll(session, { ...NOTHING, now: NOW, trimmedBefore: NOW })
      equal(await records(session, 'a'), range(0, 6), 'records')
    },
  },
  {
    title: 'blocks are freed once they have expired',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < 5; i++) await writer.append({ count: 2, expiresAt: NOW + 10 * i })
      await reclaimAll(session, { ...NOTHING, now: NOW - 1 })
      equal(await records(session, 'a'), range(0, 10), 'records before the first expires')
      await reclaimAll(session, { ...NOTHING, now: NOW })
      equal(await records(session, 'a'), range(2, 10), 'records when the first expires')
      await reclaimAll(session, { ...NOTHING, now: NOW + 29 })
      equal(await records(session, 'a'), range(6, 10), 'records when three have expired')
      await reclaimAll(session, { ...NOTHING, now: NOW + 1000 })
      equal(await records(session, 'a'), [], 'records when all have expired')
    },
  },
  {
    title: 'blocks of a log whose deletion failed are freed once they have expired',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < 2; i++) await writer.append({ expiresAt: NOW + 10 * i })
      await conflicts(
        session.commit([
          { kind: 'delete-log', logId: 'a' },
          { kind: 'set-epoch', logId: 'missing', epoch: 2 },
        ]),
        'commit that deletes the log',
      )
      await reclaimAll(session, { ...NOTHING, now: NOW })
      equal(await records(session, 'a'), [1], 'records when the first has expired')
    },
  },
  {
    title: 'a block without expiry is never freed',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append()
      await reclaimAll(session, { ...NOTHING, now: Number.MAX_SAFE_INTEGER })
      equal(await records(session, 'a'), [0], 'records')
    },
  },
  {
    title: 'a block that expires before earlier ones is freed with them, or leaves a gap',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (const expiresAt of [FAR, NOW, null, NOW + 1, NOW, FAR + 1])
        await writer.append({ count: 2, expiresAt })
      await reclaimAll(session, { ...NOTHING, now: NOW })
      for (const expected of writer.written) expected.mayBeFreed = expected.block.expiresAt === NOW
      for (let seqNum = 0; seqNum < 12; seqNum++) {
        for (const from of [{ seqNum }, { timestamp: NOW + seqNum }]) {
          for (const bytesMax of [1, WHOLE_LOG.bytesMax]) {
            const selected = { ...WHOLE_LOG, from, bytesMax }
            checkRead(writer.written, selected, await session.read('a', selected))
          }
        }
      }
      await reclaimAll(session, { ...NOTHING, now: FAR })
      const left = await records(session, 'a')
      // Those between may wait for the block that never expires.
      const certain = left.filter((seqNum) => seqNum < 6 || seqNum > 9)
      equal(certain, [4, 5, 10, 11], 'records when all before the third block have expired')
    },
  },
  {
    title: 'blocks entirely below a trim point are freed once the trim is old enough',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.appendUnmergeable(5, { count: 3 })
      await writer.append({ trimPoint: 10, trimmedAt: NOW + 50, expiresAt: FAR - 1 })
      await reclaimAll(session, { ...NOTHING, trimmedBefore: NOW + 49 })
      equal(await records(session, 'a'), range(0, 16), 'records while the trim is young')
      await reclaimAll(session, { ...NOTHING, trimmedBefore: NOW + 50 })
      equal(
        await records(session, 'a'),
        range(9, 16),
        'records: the block that holds the trim point stays whole',
      )
      await writer.append({ trimPoint: 15, trimmedAt: NOW + 90, expiresAt: FAR - 2 })
      await reclaimAll(session, { ...NOTHING, trimmedBefore: NOW + 89 })
      equal(await records(session, 'a'), range(9, 17), 'records while the second trim is young')
      await reclaimAll(session, { ...NOTHING, trimmedBefore: NOW + 90 })
      equal(await records(session, 'a'), range(15, 17), 'records after the second trim')
    },
  },
  {
    title: 'each of several trims frees blocks at its own time',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.appendUnmergeable(4, { count: 3 })
      await writer.append({ trimPoint: 3, trimmedAt: NOW + 10, expiresAt: FAR - 1 })
      await writer.append({ trimPoint: 9, trimmedAt: NOW + 20, expiresAt: FAR - 2 })
      equal((await session.head('a'))?.trims, writer.head.trims, 'trims of the head')
      await reclaimAll(session, { ...NOTHING, trimmedBefore: NOW + 19 })
      equal(await records(session, 'a'), range(3, 14), 'records when the first trim is old enough')
      await reclaimAll(session, { ...NOTHING, trimmedBefore: NOW + 20 })
      equal(await records(session, 'a'), range(9, 14), 'records when the second is, too')
    },
  },
  {
    title: 'no record at or above the trim point is freed, whichever blocks the storage merges',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < 30; i++) await writer.append({ count: 1 + (i % 3) })
      for (const trimPoint of [0, 1, 7, 20, 31]) {
        await writer.append({ trimPoint, trimmedAt: NOW })
        await reclaimAll(session, { ...NOTHING, trimmedBefore: FAR })
        for (const expected of writer.written) expected.mayBeFreed = expected.block.endSeqNum <= trimPoint
        checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
      }
    },
  },
  {
    title: 'a log that was trimmed to its tail accepts appends',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.appendUnmergeable(3)
      await writer.append({ trimPoint: 4, trimmedAt: NOW })
      await reclaimAll(session, { ...NOTHING, trimmedBefore: NOW })
      equal(await records(session, 'a'), [], 'records')
      equal(await session.head('a'), writer.head, 'head')
      await writer.append({ count: 2, expiresAt: FAR })
      equal(await records(session, 'a'), [4, 5], 'records after a further append')
      equal(await session.head('a'), writer.head, 'head after a further append')
    },
  },
  {
    title: 'a call frees at most blocksMax blocks and reports whether more are left',
    async run(harness) {
      const session = await harness.open()
      const expired = await LogWriter.create(session, 'expired')
      for (let i = 0; i < 7; i++) await expired.append({ expiresAt: NOW + i })
      const trimmed = await LogWriter.create(session, 'trimmed')
      await trimmed.appendUnmergeable(6)
      await trimmed.append({ trimPoint: 6, trimmedAt: NOW, expiresAt: unmergeableExpiry(trimmed.head) })
      let blocksLeft = 14
      for (let call = 0; blocksLeft > 1; call++) {
        ok(call < CALLS_MAX, 'reclaim makes no progress')
        const { more } = await session.reclaim({ now: NOW + 100, trimmedBefore: NOW, blocksMax: 2 })
        const now = [...(await records(session, 'expired')), ...(await records(session, 'trimmed'))].length
        ok(blocksLeft - now <= 2, `a call freed ${blocksLeft - now} blocks`)
        ok(more || now === 1, `reclaim says that it is done, but ${now - 1} blocks are left`)
        blocksLeft = now
      }
      await reclaimAll(session, { now: NOW + 100, trimmedBefore: NOW, blocksMax: 2 })
      equal(await records(session, 'trimmed'), [6], 'records of the log that was trimmed')
    },
  },
  {
    title:
      'a large batch keeps the records after a trim point within it, and is freed once all of it is trimmed or expired',
    async run(harness) {
      const session = await harness.open()
      for (const logId of ['trimmed', 'expired']) {
        const writer = await LogWriter.create(session, logId)
        await writer.append({ count: 1000, bodyBytes: 270, expiresAt: NOW + 100 })
        await writer.append({ trimPoint: 600, trimmedAt: NOW, expiresAt: FAR })
        await reclaimAll(session, { now: NOW, trimmedBefore: NOW, blocksMax: 1 })
        const remaining = (await records(session, logId)).filter((seqNum) => seqNum >= 600)
        equal(remaining, range(600, 1001), 'records from the trim point on')
        equal(await session.measure([logId]), [await measured(session, logId)], 'metered bytes')
        if (logId === 'trimmed') await writer.append({ trimPoint: 1000, trimmedAt: NOW + 1, expiresAt: FAR })
        const limits =
          logId === 'trimmed' ? { now: 0, trimmedBefore: NOW + 1 } : { now: NOW + 100, trimmedBefore: 0 }
        equal(new Set(await reclaimAll(session, { ...limits, blocksMax: 1 })), new Set([logId]), 'logs')
        equal(await records(session, logId), range(1000, writer.head.tail.seqNum), 'records when it is freed')
        equal(
          await session.measure([logId]),
          [await measured(session, logId)],
          'metered bytes when it is freed',
        )
      }
    },
  },
  {
    title: 'reclaim never changes a head',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await LogWriter.create(session, 'empty')
      const empty = await session.head('empty')
      await writer.append({ count: 3, expiresAt: NOW, fencingToken: 'token', trimPoint: 2, trimmedAt: NOW })
      await reclaimAll(session, { now: FAR, trimmedBefore: FAR, blocksMax: 1 })
      equal(await session.head('a'), writer.head, 'head')
      equal(await session.head('empty'), empty, 'head of an empty log')
    },
  },
  {
    title: 'the blocks of deleted logs are freed, and no others',
    async run(harness) {
      const session = await harness.open()
      const writers: LogWriter[] = []
      for (const logId of ['a', 'b', 'c']) {
        const writer = await LogWriter.create(session, logId)
        await writer.appendUnmergeable(20, { tag: logId })
        writers.push(writer)
      }
      await session.commit([{ kind: 'delete-log', logId: 'b' }])
      await reclaimAll(session, { ...NOTHING, blocksMax: 3 })
      for (const writer of writers) {
        if (writer.logId === 'b') continue
        equal(await session.head(writer.logId), writer.head, 'head')
        checkRead(writer.written, WHOLE_LOG, await session.read(writer.logId, WHOLE_LOG))
      }
      equal(await session.read('b', WHOLE_LOG), [], 'blocks of the deleted log')
    },
  },
  {
    title: 'reclaim reports exactly the logs whose blocks were freed',
    async run(harness) {
      const session = await harness.open()
      const expired = await LogWriter.create(session, 'expired')
      for (let i = 0; i < 5; i++) await expired.append({ expiresAt: NOW + i })
      const trimmed = await LogWriter.create(session, 'trimmed')
      await trimmed.appendUnmergeable(5)
      await trimmed.append({ trimPoint: 5, trimmedAt: NOW, expiresAt: unmergeableExpiry(trimmed.head) })
      const kept = await LogWriter.create(session, 'kept')
      await kept.appendUnmergeable(2)
      const gone = await LogWriter.create(session, 'gone')
      await gone.append({ expiresAt: NOW })
      await session.commit([{ kind: 'delete-log', logId: 'gone' }])
      const logIds = await reclaimAll(session, { now: NOW + 100, trimmedBefore: NOW, blocksMax: 2 })
      equal([...new Set(logIds)].sort(), ['expired', 'trimmed'], 'logs')
      equal(await reclaimAll(session, { now: NOW + 100, trimmedBefore: NOW, blocksMax: 2 }), [], 'logs')
    },
  },
  {
    title: 'measure returns the metered bytes of the stored blocks',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await LogWriter.create(session, 'empty')
      equal(await session.measure(['a', 'missing', 'empty']), [0, 0, 0], 'of logs without blocks')
      for (let i = 0; i < 4; i++) await writer.append({ count: 3, expiresAt: NOW + i })
      await writer.append({ count: 2, trimPoint: 12, trimmedAt: NOW, expiresAt: FAR })
      const all = await measured(session, 'a')
      equal(await session.measure(['empty', 'a', 'empty', 'a']), [0, all, 0, all], 'metered bytes')
      await reclaimAll(session, { now: NOW + 1, trimmedBefore: 0, blocksMax: 10 })
      const remaining = await measured(session, 'a')
      ok(remaining < all, 'the blocks that expired are still there')
      equal(await session.measure(['a', 'empty']), [remaining, 0], 'metered bytes when two have expired')
      await reclaimAll(session, { now: NOW + 1, trimmedBefore: NOW, blocksMax: 10 })
      const afterAll = await measured(session, 'a')
      equal(await session.measure(['a']), [afterAll], 'metered bytes after the trim')
      await session.commit([{ kind: 'delete-log', logId: 'a' }])
      equal(await session.measure(['a']), [0], 'metered bytes of a deleted log')
    },
  },
]

/** Reclaims until nothing is left. Resolves to the logs that were reported. */
export async function reclaimAll(session: StorageSession, limits: ReclaimLimits): Promise<string[]> {
  const reported: string[] = []
  for (let call = 0; ; call++) {
    const { more, logIds } = await session.reclaim(limits)
    equal(new Set(logIds).size, logIds.length, 'number of logs that one call reports')
    reported.push(...logIds)
    if (!more) return reported
    ok(call < CALLS_MAX, 'reclaim always reports that more is left')
  }
}

async function measured(session: StorageSession, logId: string): Promise<number> {
  const blocks = await session.read(logId, WHOLE_LOG)
  return blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
}

async function records(session: StorageSession, logId: string): Promise<number[]> {
  return seqNumsOf(await session.read(logId, WHOLE_LOG))
}
