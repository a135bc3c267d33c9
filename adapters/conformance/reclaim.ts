import { INTEGER_MAX } from '../../src/model/limits.ts'
import type { ReclaimLimits } from '../../src/storage/contract.ts'
import { equal, ok } from './assertions.ts'
import { FAR, NOW, range } from './blocks.ts'
import { type LogCases, onLog } from './harness.ts'
import { type AppendSpec, LogWriter, reclaimAll } from './log-writer.ts'

/** A change of a log, or a call of `reclaim` with what it leaves. */
type Step = (log: LogWriter) => Promise<unknown>

const append =
  (spec: AppendSpec = {}): Step =>
  (log) =>
    log.append(spec)

/** Appends blocks that cannot be merged. */
const appends = (count: number, spec: AppendSpec = {}, firstExpiry = FAR): Step[] =>
  range(0, count).map((i) => append({ ...spec, expiresAt: firstExpiry + 10 * i }))

/** Keeps blocks longer. */
const extend =
  (below: number, after: number, until: number | null): Step =>
  (log) =>
    log.reconfigure([{ below, after, until }])

/**
 * Reclaims, then compares the sequence numbers of the records that are left, and whether the log is reported.
 *
 * @param within The numbers that are compared. Others may be left or not.
 */
const reclaim =
  (
    limits: Partial<ReclaimLimits>,
    [first, end]: readonly [first: number, end: number],
    [least, most] = [0, INTEGER_MAX],
  ): Step =>
  async (log) => {
    const { session, logId } = log
    const [before] = await session.measure([logId])
    const reported = await reclaimAll(session, limits)
    const [after] = await session.measure([logId])
    // A log of which a part of a block can be freed may be reported before.
    if (least === 0) equal(reported, after! < before! ? [logId] : [], 'logs of which blocks were freed')
    const left = (await log.records()).filter((seqNum) => seqNum >= least && seqNum < most)
    equal(left, range(first, end), `records after reclaim with ${JSON.stringify(limits)}`)
    for (const expected of log.written) {
      const { firstSeqNum, endSeqNum } = expected.block
      expected.mayBeFreed ||= firstSeqNum < first || endSeqNum > most
    }
    await log.check()
  }

const SCENARIOS: Readonly<Record<string, readonly Step[]>> = {
  'nothing is freed that is not due': [
    reclaim({ now: NOW, trimmedBefore: NOW }, [0, 0]),
    append({ count: 3 }),
    append({ count: 3, expiresAt: FAR }),
    reclaim({ now: NOW, trimmedBefore: NOW }, [0, 6]),
  ],
  'blocks are freed once they have expired, and never without an expiry': [
    ...appends(5, { count: 2 }, NOW),
    append({ count: 2 }),
    reclaim({ now: NOW - 1 }, [0, 12]),
    reclaim({ now: NOW }, [2, 12]),
    reclaim({ now: NOW + 29 }, [6, 12]),
    reclaim({ now: Number.MAX_SAFE_INTEGER }, [10, 12]),
  ],
  // The block that holds a trim point stays whole.
  'blocks entirely below a trim point are freed once the trim is old enough': [
    ...appends(5, { count: 3 }),
    append({ trimPoint: 4, trimmedAt: NOW + 10, expiresAt: FAR - 1 }),
    append({ trimPoint: 10, trimmedAt: NOW + 20, expiresAt: FAR - 2 }),
    reclaim({ trimmedBefore: NOW + 9 }, [0, 17]),
    reclaim({ trimmedBefore: NOW + 10 }, [3, 17]),
    reclaim({ trimmedBefore: NOW + 19 }, [3, 17]),
    reclaim({ trimmedBefore: NOW + 20 }, [9, 17]),
    append({ trimPoint: 15, trimmedAt: NOW + 90, expiresAt: FAR - 3 }),
    reclaim({ trimmedBefore: NOW + 90 }, [15, 18]),
  ],
  'a log that was trimmed to its tail accepts appends': [
    ...appends(3),
    append({ trimPoint: 4 }),
    reclaim({ trimmedBefore: NOW }, [4, 4]),
    append({ count: 2, expiresAt: FAR }),
    reclaim({ trimmedBefore: NOW }, [4, 6]),
  ],
  'blocks that are extended are freed when the extension ends, and no earlier': [
    ...appends(3, { count: 2 }, NOW + 10),
    extend(INTEGER_MAX, NOW, NOW + 100),
    append({ count: 2, expiresAt: NOW + 200 }),
    reclaim({ now: NOW + 99, blocksMax: 3 }, [0, 8]),
    reclaim({ now: NOW + 99, blocksMax: 3 }, [0, 8]),
    reclaim({ now: NOW + 100, blocksMax: 3 }, [6, 8]),
    reclaim({ now: NOW + 200, blocksMax: 3 }, [8, 8]),
  ],
  // 0; 1 and 2; 3 to 5; 6 to 9; 10 to 14, which may wait for those before it.
  'an extension applies below its sequence number, and to blocks that expire after its time': [
    ...[NOW + 10, NOW + 20, null, NOW + 11, NOW + 30].map((expiresAt, i) =>
      append({ count: 1 + i, expiresAt }),
    ),
    extend(10, NOW + 10, null),
    reclaim({ now: NOW + 1_000 }, [1, 10], [0, 10]),
  ],
  'blocks above an extension are freed': [
    ...appends(2, {}, NOW + 20),
    extend(0, NOW + 10, null),
    reclaim({ now: NOW + 1_000 }, [2, 2]),
  ],
  'blocks are extended that expired by their own time, but were not freed': [
    ...appends(2, {}, NOW + 10),
    extend(2, NOW, NOW + 50),
    reclaim({ now: NOW + 30 }, [0, 2]),
    extend(2, NOW, NOW + 90),
    reclaim({ now: NOW + 80 }, [0, 2]),
    reclaim({ now: NOW + 90 }, [2, 2]),
  ],
  'trims free extended blocks': [
    ...appends(3, {}, NOW),
    extend(INTEGER_MAX, 0, null),
    reclaim({ now: NOW + 1_000, trimmedBefore: NOW }, [0, 3]),
    append({ trimPoint: 2, expiresAt: NOW + 2_000 }),
    reclaim({ now: NOW + 1_000, trimmedBefore: NOW }, [2, 4]),
  ],
  'a large batch keeps what follows a trim point within it until it expires': [
    append({ count: 1000, bodyBytes: 270, expiresAt: NOW + 100 }),
    append({ trimPoint: 600, expiresAt: FAR }),
    // A part below the trim point may be freed.
    reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 1 }, [600, 1001], [600, 1001]),
    reclaim({ now: NOW + 100, blocksMax: 1 }, [1000, 1001]),
  ],
  'a large batch is freed once it is trimmed': [
    append({ count: 1000, bodyBytes: 270, expiresAt: NOW + 100 }),
    append({ trimPoint: 600, expiresAt: FAR }),
    reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 1 }, [600, 1001], [600, 1001]),
    append({ trimPoint: 1000, trimmedAt: NOW + 1, expiresAt: FAR }),
    reclaim({ now: NOW, trimmedBefore: NOW + 1, blocksMax: 1 }, [1000, 1002]),
    // Nothing is left to expire.
    reclaim({ now: NOW + 100 }, [1000, 1002]),
  ],
}

export const reclaimCases = onLog({
  ...Object.fromEntries(Object.entries(SCENARIOS).map(([title, steps]) => [title, stepping(steps)])),

  async 'a block that expires before earlier ones is freed with them, or leaves a gap'(log) {
    for (const expiresAt of [FAR, NOW, null, NOW + 1, NOW, FAR + 1]) await log.append({ count: 2, expiresAt })
    await reclaimAll(log.session, { now: NOW })
    for (const expected of log.written) expected.mayBeFreed = expected.block.expiresAt === NOW
    for (let seqNum = 0; seqNum < 12; seqNum++) {
      for (const from of [{ seqNum }, { timestamp: NOW + seqNum }]) {
        await log.read({ from })
        await log.read({ from, bytesMax: 1 })
      }
    }
    await reclaimAll(log.session, { now: FAR })
    // Those between may wait for the block that never expires.
    const certain = (await log.records()).filter((seqNum) => seqNum < 6 || seqNum > 9)
    equal(certain, [4, 5, 10, 11], 'records when all before the third block have expired')
    for (const expected of log.written) expected.mayBeFreed = expected.block.expiresAt !== null
  },
  async 'no record at or above the trim point is freed, whichever blocks the storage merges'(log) {
    for (let i = 0; i < 30; i++) await log.append({ count: 1 + (i % 3) })
    for (const trimPoint of [0, 1, 7, 20, 31]) {
      await log.append({ trimPoint })
      await reclaimAll(log.session, { trimmedBefore: FAR })
      for (const expected of log.written) expected.mayBeFreed = expected.block.endSeqNum <= trimPoint
      await log.check()
    }
  },
  async 'a call frees at most blocksMax blocks, and reports whose they were and whether more are left'({
    session,
  }) {
    const [expired, trimmed, kept, gone] = await Promise.all(
      ['expired', 'trimmed', 'kept', 'gone'].map((logId) => LogWriter.create(session, logId)),
    )
    for (let i = 0; i < 7; i++) await expired!.append({ expiresAt: NOW + i })
    await trimmed!.appendUnmergeable(6)
    await trimmed!.appendUnmergeable(1, { trimPoint: 6 })
    await kept!.appendUnmergeable(2)
    await gone!.append({ expiresAt: NOW })
    await session.commit([{ kind: 'delete-log', logId: 'gone' }])
    const limits = { now: NOW + 100, trimmedBefore: NOW, blocksMax: 2 }
    const reported: string[] = []
    const leftOf = async () => [...(await expired!.records()), ...(await trimmed!.records())].length
    for (let left = 14, more = true; more; ) {
      const reclaimed = await session.reclaim(limits)
      more = reclaimed.more
      reported.push(...reclaimed.logIds)
      const now = await leftOf()
      ok(left - now <= 2, `a call freed ${left - now} blocks`)
      ok(reported.length < 100, 'reclaim makes no progress')
      left = now
    }
    equal(await leftOf(), 1, 'records that are left when reclaim is done')
    equal(await trimmed!.records(), [6], 'records of the log that was trimmed')
    equal([...new Set(reported)].sort(), ['expired', 'trimmed'], 'logs')
    equal(await reclaimAll(session, limits), [], 'logs of another call')
    equal(await gone!.records(), [], 'records of the deleted log')
    await kept!.check()
  },
  async 'measure returns the metered bytes of the stored blocks of several logs'({ session }) {
    const log = await LogWriter.create(session, 'b')
    equal(await session.measure(['b', 'missing', 'a']), [0, 0, 0], 'of logs without blocks')
    await log.append({ count: 3 })
    const all = log.written[0]!.block.meteredBytes
    equal(await session.measure(['a', 'b', 'a', 'b']), [0, all, 0, all], 'metered bytes')
    await session.commit([{ kind: 'delete-log', logId: 'b' }])
    equal(await session.measure(['b']), [0], 'metered bytes of a deleted log')
  },
  async 'many extended blocks do not keep others from being freed in bounded steps'(extended) {
    for (let i = 0; i < 60; i++) await extended.append({ count: 3, expiresAt: NOW + i })
    for (let i = 0; i < 3; i++) await extended.append({ count: 500, bodyBytes: 300, expiresAt: NOW + i })
    const end = extended.head.tail.seqNum
    await extended.reconfigure([{ below: end, after: 0, until: NOW + 5_000 }])
    for (let i = 0; i < 20; i++) await extended.append({ expiresAt: NOW + 100 + i })
    const other = await LogWriter.create(extended.session, 'other')
    for (let i = 0; i < 20; i++) await other.append({ expiresAt: NOW + 200 + i })
    const limits = { now: NOW + 1_000, blocksMax: 1 }
    // Blocks that are not extended may wait for those before them.
    const logIds = await reclaimAll(extended.session, limits)
    ok(logIds.includes('other'), 'the other log is reported')
    equal((await extended.records()).slice(0, end), range(0, end), 'records')
    equal(await other.records(), [], 'records of the other log')
    equal(await reclaimAll(extended.session, limits), [], 'logs of another call')
    await reclaim({ now: NOW + 5_000 }, [end + 20, end + 20])(extended)
  },
})

function stepping(steps: readonly Step[]): LogCases[string] {
  return async (log) => {
    for (const step of steps) await step(log)
  }
}
