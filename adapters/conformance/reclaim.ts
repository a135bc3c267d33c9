import { INTEGER_MAX } from '../../src/model/limits.ts'
import type { ReclaimLimits } from '../../src/storage/contract.ts'
import { conflicts, equal, ok } from './assertions.ts'
import { checkRead, FAR, NOW, range, WHOLE_LOG } from './blocks.ts'
import type { Cases } from './harness.ts'
import { LogWriter, reclaimAll, unmergeableExpiry } from './log-writer.ts'

export const reclaimCases: Cases = {
  async 'reclaim reports nothing left if there is nothing to free'(harness) {
    const log = await harness.log()
    await reclaim(log)
    await log.append({ count: 3 })
    await log.append({ count: 3, expiresAt: FAR })
    await reclaim(log, { now: NOW, trimmedBefore: NOW })
    await log.check()
  },
  async 'blocks are freed once they have expired, and never without an expiry'(harness) {
    const log = await harness.log()
    for (let i = 0; i < 5; i++) await log.append({ count: 2, expiresAt: NOW + 10 * i })
    await log.append({ count: 2 })
    for (const [now, first] of [
      [NOW - 1, 0],
      [NOW, 2],
      [NOW + 29, 6],
      [Number.MAX_SAFE_INTEGER, 10],
    ] as const) {
      await reclaim(log, { now })
      equal(await log.records(), range(first, 12), `records at ${now}`)
    }
  },
  async 'blocks of a log whose deletion failed are freed once they have expired'(harness) {
    const log = await harness.log()
    for (let i = 0; i < 2; i++) await log.append({ expiresAt: NOW + 10 * i })
    const deletion = log.session.commit([
      { kind: 'delete-log', logId: 'a' },
      { kind: 'set-epoch', logId: 'missing', epoch: 2 },
    ])
    await conflicts(deletion, 'commit that deletes the log')
    await reclaim(log, { now: NOW })
    equal(await log.records(), [1], 'records when the first has expired')
  },
  async 'a block that expires before earlier ones is freed with them, or leaves a gap'(harness) {
    const log = await harness.log()
    for (const expiresAt of [FAR, NOW, null, NOW + 1, NOW, FAR + 1]) await log.append({ count: 2, expiresAt })
    await reclaim(log, { now: NOW })
    for (const expected of log.written) expected.mayBeFreed = expected.block.expiresAt === NOW
    for (let seqNum = 0; seqNum < 12; seqNum++) {
      for (const from of [{ seqNum }, { timestamp: NOW + seqNum }]) {
        for (const bytesMax of [1, WHOLE_LOG.bytesMax]) {
          const selected = { ...WHOLE_LOG, from, bytesMax }
          checkRead(log.written, selected, await log.session.read('a', selected))
        }
      }
    }
    await reclaim(log, { now: FAR })
    // Those between may wait for the block that never expires.
    const certain = (await log.records()).filter((seqNum) => seqNum < 6 || seqNum > 9)
    equal(certain, [4, 5, 10, 11], 'records when all before the third block have expired')
  },
  async 'blocks entirely below a trim point are freed once the trim is old enough'(harness) {
    const log = await harness.log()
    await log.appendUnmergeable(5, { count: 3 })
    await log.append({ trimPoint: 4, trimmedAt: NOW + 10, expiresAt: FAR - 1 })
    await log.append({ trimPoint: 10, trimmedAt: NOW + 20, expiresAt: FAR - 2 })
    equal((await log.session.head('a'))?.trims, log.head.trims, 'trims of the head')
    // The block that holds a trim point stays whole.
    for (const [trimmedBefore, first] of [
      [NOW + 9, 0],
      [NOW + 10, 3],
      [NOW + 19, 3],
      [NOW + 20, 9],
    ] as const) {
      await reclaim(log, { trimmedBefore })
      equal(await log.records(), range(first, 17), `records when trims before ${trimmedBefore} count`)
    }
    await log.append({ trimPoint: 15, trimmedAt: NOW + 90, expiresAt: FAR - 3 })
    await reclaim(log, { trimmedBefore: NOW + 90 })
    equal(await log.records(), range(15, 18), 'records after another trim')
  },
  async 'no record at or above the trim point is freed, whichever blocks the storage merges'(harness) {
    const log = await harness.log()
    for (let i = 0; i < 30; i++) await log.append({ count: 1 + (i % 3) })
    for (const trimPoint of [0, 1, 7, 20, 31]) {
      await log.append({ trimPoint, trimmedAt: NOW })
      await reclaim(log, { trimmedBefore: FAR })
      for (const expected of log.written) expected.mayBeFreed = expected.block.endSeqNum <= trimPoint
      await log.check()
    }
  },
  async 'a log that was trimmed to its tail accepts appends'(harness) {
    const log = await harness.log()
    await log.appendUnmergeable(3)
    await log.append({ trimPoint: 4, trimmedAt: NOW })
    await reclaim(log, { trimmedBefore: NOW })
    equal(await log.records(), [], 'records')
    equal(await log.session.head('a'), log.head, 'head')
    await log.append({ count: 2, expiresAt: FAR })
    equal(await log.records(), [4, 5], 'records after a further append')
    equal(await log.session.head('a'), log.head, 'head after a further append')
  },
  async 'a call frees at most blocksMax blocks and reports whether more are left'(harness) {
    const expired = await harness.log('expired')
    for (let i = 0; i < 7; i++) await expired.append({ expiresAt: NOW + i })
    const trimmed = await LogWriter.create(expired.session, 'trimmed')
    await trimmed.appendUnmergeable(6)
    await trimmed.append({ trimPoint: 6, trimmedAt: NOW, expiresAt: unmergeableExpiry(trimmed.head) })
    const limits = { now: NOW + 100, trimmedBefore: NOW, blocksMax: 2 }
    for (let left = 14, call = 0; left > 1; call++) {
      ok(call < 100, 'reclaim makes no progress')
      const { more } = await expired.session.reclaim(limits)
      const now = [...(await expired.records()), ...(await trimmed.records())].length
      ok(left - now <= 2, `a call freed ${left - now} blocks`)
      ok(more || now === 1, `reclaim says that it is done, but ${now - 1} blocks are left`)
      left = now
    }
    await reclaim(expired, limits)
    equal(await trimmed.records(), [6], 'records of the log that was trimmed')
  },
  async 'a large batch keeps what follows a trim point within it, and is freed once nothing is left'(
    harness,
  ) {
    const session = await harness.open()
    for (const logId of ['trimmed', 'expired']) {
      const log = await LogWriter.create(session, logId)
      await log.append({ count: 1000, bodyBytes: 270, expiresAt: NOW + 100 })
      await log.append({ trimPoint: 600, trimmedAt: NOW, expiresAt: FAR })
      await reclaim(log, { now: NOW, trimmedBefore: NOW, blocksMax: 1 })
      const remaining = (await log.records()).filter((seqNum) => seqNum >= 600)
      equal(remaining, range(600, 1001), 'records from the trim point on')
      await log.measured()
      if (logId === 'trimmed') await log.append({ trimPoint: 1000, trimmedAt: NOW + 1, expiresAt: FAR })
      const limits = logId === 'trimmed' ? { trimmedBefore: NOW + 1 } : { now: NOW + 100 }
      equal(unique(await reclaim(log, { ...limits, blocksMax: 1 })), [logId], 'logs')
      equal(await log.records(), range(1000, log.head.tail.seqNum), 'records when it is freed')
      await log.measured()
    }
  },
  async 'reclaim never changes a head'(harness) {
    const log = await harness.log()
    const empty = await LogWriter.create(log.session, 'empty')
    await log.append({ count: 3, expiresAt: NOW, fencingToken: 'token', trimPoint: 2, trimmedAt: NOW })
    await reclaim(log, { now: FAR, trimmedBefore: FAR, blocksMax: 1 })
    equal(await log.session.head('a'), log.head, 'head')
    await empty.check()
  },
  async 'the blocks of deleted logs are freed, and no others'(harness) {
    const session = await harness.open()
    const logs = await Promise.all(['a', 'b', 'c'].map((logId) => LogWriter.create(session, logId)))
    for (const log of logs) await log.appendUnmergeable(20, { tag: log.logId })
    await session.commit([{ kind: 'delete-log', logId: 'b' }])
    await reclaim(logs[0]!, { blocksMax: 3 })
    for (const log of logs) if (log.logId !== 'b') await log.check()
    equal(await session.read('b', WHOLE_LOG), [], 'blocks of the deleted log')
  },
  async 'reclaim reports exactly the logs whose blocks were freed'(harness) {
    const expired = await harness.log('expired')
    const { session } = expired
    for (let i = 0; i < 5; i++) await expired.append({ expiresAt: NOW + i })
    const trimmed = await LogWriter.create(session, 'trimmed')
    await trimmed.appendUnmergeable(5)
    await trimmed.append({ trimPoint: 5, trimmedAt: NOW, expiresAt: unmergeableExpiry(trimmed.head) })
    await (await LogWriter.create(session, 'kept')).appendUnmergeable(2)
    await (await LogWriter.create(session, 'gone')).append({ expiresAt: NOW })
    await session.commit([{ kind: 'delete-log', logId: 'gone' }])
    const limits = { now: NOW + 100, trimmedBefore: NOW, blocksMax: 2 }
    equal(unique(await reclaim(expired, limits)), ['expired', 'trimmed'], 'logs')
    equal(await reclaim(expired, limits), [], 'logs of another call')
  },
  async 'measure returns the metered bytes of the stored blocks'(harness) {
    const log = await harness.log()
    const { session } = log
    await LogWriter.create(session, 'empty')
    equal(await session.measure(['a', 'missing', 'empty']), [0, 0, 0], 'of logs without blocks')
    for (let i = 0; i < 4; i++) await log.append({ count: 3, expiresAt: NOW + i })
    await log.append({ count: 2, trimPoint: 12, trimmedAt: NOW, expiresAt: FAR })
    const all = await log.measured()
    equal(await session.measure(['empty', 'a', 'empty', 'a']), [0, all, 0, all], 'metered bytes')
    await reclaim(log, { now: NOW + 1 })
    ok((await log.measured()) < all, 'the blocks that expired are still counted')
    await reclaim(log, { now: NOW + 1, trimmedBefore: NOW })
    await log.measured()
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    equal(await session.measure(['a']), [0], 'metered bytes of a deleted log')
  },

  // Extensions of the retention keep blocks longer than their `expiresAt`.
  async 'set-epoch sets extensions, which appends and the next set-epoch keep'(harness) {
    const log = await harness.log()
    await log.append({ count: 2 })
    const last = { below: INTEGER_MAX, after: NOW + 5, until: null }
    await log.extend([{ below: 1, after: NOW, until: NOW + 10 }, last])
    await log.check()
    await log.append()
    await log.check()
    const epoch = log.head.epoch + 1
    await log.session.commit([{ kind: 'set-epoch', logId: 'a', epoch }])
    log.head = { ...log.head, epoch }
    await log.check()
    await log.extend([last])
    await log.check()
  },
  async 'blocks that are extended are freed when the extension ends, and no earlier'(harness) {
    const log = await harness.log()
    for (let i = 0; i < 3; i++) await log.append({ count: 2, expiresAt: NOW + 10 + i })
    await log.extend([{ below: INTEGER_MAX, after: NOW, until: NOW + 100 }])
    await log.append({ count: 2, expiresAt: NOW + 200 })
    for (const [now, first] of [
      [NOW + 99, 0],
      [NOW + 99, 0],
      [NOW + 100, 6],
      [NOW + 200, 8],
    ] as const) {
      await reclaim(log, { now, blocksMax: 3 })
      equal(await log.records(), range(first, 8), `records at ${now}`)
    }
  },
  async 'an extension applies below its sequence number, and to blocks that expire after its time'(harness) {
    const log = await harness.log()
    for (const [i, expiresAt] of [NOW + 10, NOW + 20, null, NOW + 11, NOW + 30].entries()) {
      await log.append({ count: 1 + i, expiresAt })
    }
    await log.extend([{ below: 10, after: NOW + 10, until: null }])
    await reclaim(log, { now: NOW + 1_000 })
    // 0; 1, 2; 3 to 5; 6 to 9; 10 to 14, which may wait.
    equal((await log.records()).slice(0, 9), range(1, 10), 'records')
    const other = await LogWriter.create(log.session, 'b')
    for (let i = 0; i < 2; i++) await other.append({ expiresAt: NOW + 20 })
    await other.extend([{ below: 0, after: NOW + 10, until: null }])
    await reclaim(other, { now: NOW + 1_000 })
    equal(await other.records(), [], 'records above the extension')
  },
  async 'blocks are extended that expired by their own time, but were not freed'(harness) {
    const log = await harness.log()
    for (const expiresAt of [NOW + 10, NOW + 20]) await log.append({ expiresAt })
    await log.extend([{ below: 2, after: NOW, until: NOW + 50 }])
    await reclaim(log, { now: NOW + 30 })
    equal(await log.records(), [0, 1], 'records within the first extension')
    await log.extend([{ below: 2, after: NOW, until: NOW + 90 }])
    await reclaim(log, { now: NOW + 80 })
    equal(await log.records(), [0, 1], 'records within the second extension')
    await reclaim(log, { now: NOW + 90 })
    equal(await log.records(), [], 'records afterwards')
  },
  async 'trims and deletions free extended blocks'(harness) {
    const log = await harness.log()
    const limits = { now: NOW + 1_000, trimmedBefore: NOW }
    for (let i = 0; i < 3; i++) await log.append({ expiresAt: NOW + i })
    await log.extend([{ below: INTEGER_MAX, after: 0, until: null }])
    await reclaim(log, limits)
    equal(await log.records(), [0, 1, 2], 'records')
    await log.append({ trimPoint: 2, trimmedAt: NOW, expiresAt: NOW + 2_000 })
    await reclaim(log, limits)
    equal(await log.records(), [2, 3], 'records after the trim')
    await log.session.commit([{ kind: 'delete-log', logId: 'a' }])
    await reclaim(log, limits)
    equal(await log.records(), [], 'records of the deleted log')
  },
  async 'many extended blocks do not keep others from being freed in bounded steps'(harness) {
    const extended = await harness.log('extended')
    for (let i = 0; i < 60; i++) await extended.append({ count: 3, expiresAt: NOW + i })
    for (let i = 0; i < 3; i++) await extended.append({ count: 500, bodyBytes: 300, expiresAt: NOW + i })
    const end = extended.head.tail.seqNum
    await extended.extend([{ below: end, after: 0, until: NOW + 5_000 }])
    for (let i = 0; i < 20; i++) await extended.append({ expiresAt: NOW + 100 + i })
    const other = await LogWriter.create(extended.session, 'other')
    for (let i = 0; i < 20; i++) await other.append({ expiresAt: NOW + 200 + i })
    const limits = { now: NOW + 1_000, blocksMax: 1 }
    // Blocks that are not extended may wait for those before them.
    const logIds = (await reclaim(extended, limits)).filter((logId) => logId !== 'extended')
    equal(unique(logIds), ['other'], 'logs')
    equal((await extended.records()).slice(0, end), range(0, end), 'records')
    equal(await other.records(), [], 'records of the other log')
    await extended.measured()
    equal(await reclaim(extended, limits), [], 'logs of another call')
    await reclaim(extended, { now: NOW + 5_000 })
    equal(await extended.records(), [], 'records when the extension ends')
  },
}

/** Reclaims until nothing is left; nothing is due by default. Resolves to the logs that were reported. */
function reclaim({ session }: LogWriter, limits: Partial<ReclaimLimits> = {}): Promise<string[]> {
  return reclaimAll(session, { now: 0, trimmedBefore: 0, blocksMax: 1000, ...limits })
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort()
}
