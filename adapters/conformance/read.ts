import { BATCH_METERED_BYTES_MAX, INTEGER_MAX } from '../../src/model/limits.ts'
import type { ReadRange, StorageSession, StoredBlock } from '../../src/storage/contract.ts'
import { type ConformanceCase, equal, ok } from './harness.ts'
import { FAR, LogWriter, NOW, range, seqNumsOf, WHOLE_LOG } from './log-writer.ts'
import { checkRead } from './model.ts'
import { reclaimAll } from './reclaim.ts'

export const readCases: readonly ConformanceCase[] = [
  {
    title: 'a read stops after the block that reaches recordsMax',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.appendUnmergeable(10, { count: 3 })
      for (const [recordsMax, records] of [
        [1, 3],
        [3, 3],
        [4, 6],
        [30, 30],
        [99, 30],
      ] as const) {
        const blocks = await session.read('a', { ...WHOLE_LOG, recordsMax })
        equal(seqNumsOf(blocks).length, records, `records read with recordsMax ${recordsMax}`)
      }
    },
  },
  {
    title: 'a missing log and an empty one read as empty',
    async run(harness) {
      const session = await harness.open()
      await LogWriter.create(session, 'a')
      for (const logId of ['a', 'missing']) {
        equal(await session.read(logId, WHOLE_LOG), [], 'from a sequence number')
        equal(await session.read(logId, { ...WHOLE_LOG, from: { timestamp: 0 } }), [], 'from a timestamp')
      }
    },
  },
  {
    title: 'a read returns the blocks that were appended',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const spec = { count: 3, timestamp: 0 }
      await writer.append({ ...spec, expiresAt: FAR })
      await writer.append({ ...spec, expiresAt: null })
      await writer.append({ ...spec, timestamp: INTEGER_MAX, expiresAt: INTEGER_MAX })
      const blocks = await session.read('a', WHOLE_LOG)
      equal(
        blocks,
        writer.written.map(({ block }) => block),
        'blocks that cannot be merged',
      )
    },
  },
  {
    title: 'bytes that were read may be modified',
    needs: ['new-memory'],
    async run(harness) {
      const session = await harness.open()
      const writer = await unmergeableBlocks(session, 10)
      for (const { data } of await session.read('a', WHOLE_LOG)) data.fill(0)
      equal(
        await session.read('a', WHOLE_LOG),
        writer.written.map(({ block }) => block),
        'blocks read again',
      )
    },
  },
  {
    title: 'a read from a sequence number begins with the block that contains it',
    async run(harness) {
      const session = await harness.open()
      const writer = await unmergeableBlocks(session, 10)
      for (let seqNum = 0; seqNum <= 32; seqNum++) {
        const blocks = await read(session, writer, { from: { seqNum } })
        const expected = range(Math.min(seqNum - (seqNum % 3), 30), 30)
        equal(seqNumsOf(blocks), expected, `records of the blocks from ${seqNum}`)
      }
    },
  },
  {
    title: 'a read ends with the block that contains the record before endSeqNum',
    async run(harness) {
      const session = await harness.open()
      const writer = await unmergeableBlocks(session, 10)
      for (let endSeqNum = 0; endSeqNum <= 32; endSeqNum++) {
        const blocks = await read(session, writer, { endSeqNum })
        const expected = range(0, Math.min(3 * Math.ceil(endSeqNum / 3), 30))
        equal(seqNumsOf(blocks), expected, `records of the blocks up to ${endSeqNum}`)
      }
      for (const [seqNum, endSeqNum] of [
        [4, 4],
        [5, 4],
        [9, 3],
        [30, 30],
      ] as const) {
        equal(
          await read(session, writer, { from: { seqNum }, endSeqNum }),
          [],
          `blocks from ${seqNum} to ${endSeqNum}`,
        )
      }
      equal(
        seqNumsOf(await read(session, writer, { from: { seqNum: 4 }, endSeqNum: 5 })),
        [3, 4, 5],
        'one record',
      )
    },
  },
  {
    title: 'any range returns the right records, whichever blocks the storage merges',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < 60; i++) await writer.append({ count: 1 + (i % 4), expiresAt: i < 30 ? null : FAR })
      const end = writer.head.tail.seqNum
      for (let seqNum = 0; seqNum <= end; seqNum += 7) {
        for (let endSeqNum = seqNum; endSeqNum <= end + 5; endSeqNum += 13) {
          await read(session, writer, { from: { seqNum }, endSeqNum })
          await read(session, writer, { from: { timestamp: NOW + seqNum }, endSeqNum })
          await read(session, writer, { from: { seqNum }, endSeqNum, bytesMax: 50 })
        }
      }
    },
  },
  {
    title: 'merged blocks have at most 1,000 records and 1 MiB',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const appends = Array.from({ length: 1500 }, () => writer.append())
      for (let i = 0; i < 30; i++) appends.push(writer.append({ bodyBytes: 100_000 }))
      await Promise.all(appends)
      await read(session, writer, {})
    },
  },
  {
    title:
      'merged blocks stay within the encoded size of a batch, which tiny headers reach before 1 MiB metered',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      // Two of these blocks have less than 1 MiB metered, and more than twice that encoded.
      const headers = BATCH_METERED_BYTES_MAX / 8 - 4
      await Promise.all([writer.append({ headers }), writer.append({ headers })])
      for (let time = 0; time < 2; time++) {
        equal(seqNumsOf(await session.read('a', WHOLE_LOG)), [0, 1], 'records')
        await reclaimAll(session, { now: NOW, trimmedBefore: 0, blocksMax: 1_000 })
      }
    },
  },
  {
    title: 'a read from a timestamp begins with the first block that reaches it',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (const timestamp of [100, 200, 200, 200, 300, 500]) {
        await writer.appendUnmergeable(1, { count: 2, timestamp })
      }
      for (const [timestamp, first] of [
        [0, 0],
        [100, 0],
        [101, 2],
        [200, 2],
        [201, 8],
        [300, 8],
        [301, 10],
        [500, 10],
        [501, 12],
        [INTEGER_MAX, 12],
      ] as const) {
        const blocks = await read(session, writer, { from: { timestamp } })
        equal(seqNumsOf(blocks), range(first, 12), `records of the blocks from timestamp ${timestamp}`)
      }
      const bounded = await read(session, writer, { from: { timestamp: 200 }, endSeqNum: 4 })
      equal(seqNumsOf(bounded), [2, 3], 'records up to an end')
      equal(
        await read(session, writer, { from: { timestamp: 500 }, endSeqNum: 10 }),
        [],
        'an end before the start',
      )
    },
  },
  {
    title: 'a timestamp within a block finds that block',
    async run(harness) {
      const session = await harness.open()
      const writer = await unmergeableBlocks(session, 5)
      for (let seqNum = 0; seqNum < 15; seqNum++) {
        const blocks = await read(session, writer, { from: { timestamp: NOW + seqNum } })
        equal(
          blocks[0]?.firstSeqNum,
          seqNum - (seqNum % 3),
          `first block from the timestamp of record ${seqNum}`,
        )
      }
    },
  },
  {
    title: 'a read stops after the block that reaches bytesMax, and returns at least one block',
    async run(harness) {
      const session = await harness.open()
      const writer = await unmergeableBlocks(session, 10, 100)
      const size = writer.written[0]!.block.meteredBytes
      for (const [bytesMax, count] of [
        [0, 1],
        [1, 1],
        [size - 1, 1],
        [size, 1],
        [size + 1, 2],
        [2 * size, 2],
        [5 * size - 1, 5],
        [10 * size, 10],
        [100 * size, 10],
      ] as const) {
        const blocks = await read(session, writer, { bytesMax })
        equal(blocks.length, count, `number of blocks for ${bytesMax} bytes`)
      }
      equal(
        (await read(session, writer, { from: { timestamp: NOW + 4 }, bytesMax: 1 })).length,
        1,
        'from a timestamp',
      )
    },
  },
  {
    title: 'consecutive reads return every record once',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const appends = Array.from({ length: 1000 }, (_, i) => writer.append({ bodyBytes: i % 50 }))
      await Promise.all(appends)
      const seqNums: number[] = []
      for (;;) {
        const blocks = await read(session, writer, { from: { seqNum: seqNums.length }, bytesMax: 2000 })
        if (blocks.length === 0) break
        const next = seqNumsOf(blocks).filter((seqNum) => seqNum >= seqNums.length)
        ok(next.length > 0, 'a page makes no progress')
        seqNums.push(...next)
      }
      equal(seqNums, range(0, 1000), 'sequence numbers')
    },
  },
  {
    title: 'blocks of 1 MiB are read whole',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      for (let i = 0; i < 4; i++)
        await writer.append({ bodyBytes: BATCH_METERED_BYTES_MAX - 8, tag: `large-${i}` })
      const all = await read(session, writer, {})
      equal(seqNumsOf(all), [0, 1, 2, 3], 'records')
      const two = await read(session, writer, { from: { seqNum: 1 }, bytesMax: BATCH_METERED_BYTES_MAX + 1 })
      equal(seqNumsOf(two), [1, 2], 'records of a bounded read')
    },
  },
  {
    title: 'a large batch can be read from any record, and in one block if unsplit is set',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append()
      for (const bodyBytes of [60, 270, 1000]) await writer.append({ count: 1000, bodyBytes })
      await writer.append({ bodyBytes: 200_000 })
      for (const seqNum of [1, 500, 1001, 1777, 3001, 3002]) {
        for (const from of [{ seqNum }, { timestamp: NOW + seqNum }]) {
          for (const unsplit of [false, true]) {
            await read(session, writer, { from, unsplit })
            await read(session, writer, { from, unsplit, bytesMax: 1 })
            await read(session, writer, { from, unsplit, bytesMax: 100_000 })
            await read(session, writer, { from, unsplit, endSeqNum: 2222 })
          }
          const [first] = await session.read('a', { ...WHOLE_LOG, from, recordsMax: 1 })
          const holds = first === undefined || (first.firstSeqNum <= seqNum && first.endSeqNum > seqNum)
          ok(holds && (first === undefined) === seqNum > 3001, `the first block from ${seqNum} is another`)
        }
      }
      equal(await session.measure(['a']), [sizeOf(await session.read('a', WHOLE_LOG))], 'metered bytes')
    },
  },
  {
    title: 'a view of a larger buffer is stored without the rest of the buffer',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const request = writer.request({ count: 2 })
      const { data } = request.block
      const buffer = new Uint8Array(data.length + 20).fill(0xee)
      buffer.set(data, 10)
      await session.append({
        ...request,
        block: { ...request.block, data: buffer.subarray(10, 10 + data.length) },
      })
      const [block] = await read(session, writer, {})
      equal(block?.data, data, 'bytes')
    },
  },
]

/** Appends blocks of three records each that a storage must not merge. */
async function unmergeableBlocks(
  session: StorageSession,
  count: number,
  bodyBytes?: number,
): Promise<LogWriter> {
  const writer = await LogWriter.create(session, 'a')
  await writer.appendUnmergeable(count, { count: 3, bodyBytes })
  return writer
}

function sizeOf(blocks: readonly StoredBlock[]): number {
  return blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
}

/** Reads, and compares the result with everything that was written. */
async function read(session: StorageSession, writer: LogWriter, part: Partial<ReadRange>) {
  const whole = { ...WHOLE_LOG, ...part }
  const blocks = await session.read(writer.logId, whole)
  checkRead(writer.written, whole, blocks)
  return blocks
}
