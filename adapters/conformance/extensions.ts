import type { RetentionExtension } from '../../src/core/retention.ts'
import { INTEGER_MAX } from '../../src/model/limits.ts'
import type { StorageSession } from '../../src/storage/contract.ts'
import { type ConformanceCase, equal } from './harness.ts'
import { LogWriter, NOW, range, seqNumsOf, WHOLE_LOG } from './log-writer.ts'
import { reclaimAll } from './reclaim.ts'

/** Extensions of the retention of a log, which keep blocks longer than their `expiresAt`. */
export const extensionCases: readonly ConformanceCase[] = [
  {
    title: 'set-epoch sets the extensions of a head, an append keeps them, and so does the next set-epoch',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ count: 2 })
      const extensions = [
        { below: 1, after: NOW, until: NOW + 10 },
        { below: INTEGER_MAX, after: NOW + 5, until: null },
      ]
      await writer.extend(extensions)
      equal(await session.head('a'), writer.head, 'head')
      await writer.append()
      equal(await session.head('a'), writer.head, 'head after an append')
      const epoch = writer.head.epoch + 1
      await session.commit([{ kind: 'set-epoch', logId: 'a', epoch }])
      writer.head = { ...writer.head, epoch }
      equal(await session.head('a'), writer.head, 'head in the next epoch')
      await writer.extend([extensions[1]!])
      equal(await session.head('a'), writer.head, 'head with other extensions')
    },
  },
  {
    title: 'blocks that are extended are freed when the extension ends, and no earlier',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < 3; i++) await writer.append({ count: 2, expiresAt: NOW + 10 + i })
      await writer.extend([{ below: INTEGER_MAX, after: NOW, until: NOW + 100 }])
      await writer.append({ count: 2, expiresAt: NOW + 200 })
      equal(await reclaimed(session, NOW + 99), range(0, 8), 'records before the extension ends')
      equal(await reclaimed(session, NOW + 99), range(0, 8), 'records after another call')
      equal(await reclaimed(session, NOW + 100), [6, 7], 'records when the extension ends')
      equal(await reclaimed(session, NOW + 200), [], 'records when the last expires')
    },
  },
  {
    title: 'an extension applies below its sequence number, and to blocks that expire after its time',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (const [i, expiresAt] of [NOW + 10, NOW + 20, null, NOW + 11, NOW + 30].entries()) {
        await writer.append({ count: 1 + i, expiresAt })
      }
      await writer.extend([{ below: 10, after: NOW + 10, until: null }])
      // 0; 1, 2; 3 to 5; 6 to 9; 10 to 14, which may wait.
      const left = await reclaimed(session, NOW + 1_000)
      equal(left.slice(0, 9), range(1, 10), 'records')
      const other = await LogWriter.create(session, 'b')
      await other.append({ expiresAt: NOW + 20 })
      await other.append({ expiresAt: NOW + 20 })
      await other.extend([{ below: 0, after: NOW + 10, until: null }])
      equal(await reclaimed(session, NOW + 1_000, 'b'), [], 'records above the extension')
    },
  },
  {
    title: 'blocks are extended that expired by their own time, but were not freed',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ expiresAt: NOW + 10 })
      await writer.append({ expiresAt: NOW + 20 })
      await writer.extend([{ below: 2, after: NOW, until: NOW + 50 }])
      equal(await reclaimed(session, NOW + 30), [0, 1], 'records within the first extension')
      await writer.extend([{ below: 2, after: NOW, until: NOW + 90 }])
      equal(await reclaimed(session, NOW + 80), [0, 1], 'records within the second extension')
      equal(await reclaimed(session, NOW + 90), [], 'records afterwards')
    },
  },
  {
    title: 'trims and deletions free extended blocks',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < 3; i++) await writer.append({ expiresAt: NOW + i })
      await writer.extend([{ below: INTEGER_MAX, after: 0, until: null }])
      equal(await reclaimed(session, NOW + 1_000), [0, 1, 2], 'records')
      await writer.append({ trimPoint: 2, trimmedAt: NOW, expiresAt: NOW + 2_000 })
      await reclaimAll(session, { now: NOW + 1_000, trimmedBefore: NOW, blocksMax: 10 })
      equal(seqNumsOf(await session.read('a', WHOLE_LOG)), [2, 3], 'records after the trim')
      await session.commit([{ kind: 'delete-log', logId: 'a' }])
      await reclaimAll(session, { now: NOW + 1_000, trimmedBefore: NOW, blocksMax: 10 })
      equal(await session.read('a', WHOLE_LOG), [], 'blocks of the deleted log')
    },
  },
  {
    title: 'many extended blocks, small and large, do not keep others from being freed in bounded steps',
    async run(harness) {
      const session = await harness.open()
      const extended = await LogWriter.create(session, 'extended')
      for (let i = 0; i < 60; i++) await extended.append({ count: 3, expiresAt: NOW + i })
      for (let i = 0; i < 3; i++) await extended.append({ count: 500, bodyBytes: 300, expiresAt: NOW + i })
      const end = extended.head.tail.seqNum
      await extended.extend([{ below: end, after: 0, until: NOW + 5_000 }])
      for (let i = 0; i < 20; i++) await extended.append({ expiresAt: NOW + 100 + i })
      const other = await LogWriter.create(session, 'other')
      for (let i = 0; i < 20; i++) await other.append({ expiresAt: NOW + 200 + i })
      const limits = { now: NOW + 1_000, trimmedBefore: 0, blocksMax: 1 }
      const logIds = new Set(await reclaimAll(session, limits))
      // Blocks that are not extended may wait for those before them.
      equal(
        [...logIds].filter((logId) => logId !== 'extended'),
        ['other'],
        'logs',
      )
      equal(seqNumsOf(await session.read('extended', WHOLE_LOG)).slice(0, end), range(0, end), 'records')
      equal(seqNumsOf(await session.read('other', WHOLE_LOG)), [], 'records of the other log')
      const [bytes] = await session.measure(['extended'])
      const blocks = await session.read('extended', WHOLE_LOG)
      equal(
        bytes,
        blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
        'metered bytes',
      )
      equal(await reclaimAll(session, limits), [], 'logs of another call')
      equal(await reclaimed(session, NOW + 5_000, 'extended'), [], 'records when the extension ends')
    },
  },
  {
    title: 'a reopened storage keeps extended blocks',
    needs: ['reopen'],
    async run(harness) {
      let session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < 5; i++) await writer.append({ count: 2, expiresAt: NOW + 10 + i })
      const extensions: RetentionExtension[] = [{ below: 6, after: NOW, until: NOW + 100 }]
      await writer.extend(extensions)
      for (const now of [NOW + 50, NOW + 99]) {
        session = await harness.reopen()
        equal((await session.head('a'))?.extensions, extensions, 'extensions of the head')
        equal((await reclaimed(session, now)).slice(0, 6), range(0, 6), 'records within the extension')
      }
      session = await harness.reopen()
      equal(await reclaimed(session, NOW + 100), [], 'records when the extension ends')
    },
  },
]

/** Reclaims at a time, and returns the sequence numbers of the remaining records. */
async function reclaimed(session: StorageSession, now: number, logId = 'a'): Promise<number[]> {
  await reclaimAll(session, { now, trimmedBefore: 0, blocksMax: 3 })
  return seqNumsOf(await session.read(logId, WHOLE_LOG))
}
