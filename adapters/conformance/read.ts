import { BATCH_METERED_BYTES_MAX, INTEGER_MAX } from '../../src/model/limits.ts'
import type { ReadRange, StoredBlock } from '../../src/storage/contract.ts'
import { equal, ok } from './assertions.ts'
import { checkRead, FAR, NOW, range, seqNumsOf, WHOLE_LOG } from './blocks.ts'
import type { Cases, Harness } from './harness.ts'
import { type LogWriter, reclaimAll } from './log-writer.ts'

export const readCases: Cases = {
  async 'a read stops after the block that reaches recordsMax'(harness) {
    const log = await threesOf(harness, 10)
    for (const [recordsMax, records] of [
      [1, 3],
      [3, 3],
      [4, 6],
      [30, 30],
      [99, 30],
    ] as const) {
      const blocks = await log.session.read('a', { ...WHOLE_LOG, recordsMax })
      equal(seqNumsOf(blocks), range(0, records), `records read with recordsMax ${recordsMax}`)
    }
  },
  async 'an empty log reads as empty'(harness) {
    const log = await harness.log()
    equal(await read(log, {}), [], 'from a sequence number')
    equal(await read(log, { from: { timestamp: 0 } }), [], 'from a timestamp')
  },
  async 'a read returns the blocks that were appended'(harness) {
    const log = await harness.log()
    await log.append({ count: 3, timestamp: 0, expiresAt: FAR })
    await log.append({ count: 3, timestamp: 0, expiresAt: null })
    await log.append({ count: 3, timestamp: INTEGER_MAX, expiresAt: INTEGER_MAX })
    equal(await read(log, {}), blocksOf(log), 'blocks that cannot be merged')
  },
  async 'a read begins with the block that contains its sequence number'(harness) {
    const log = await threesOf(harness, 10)
    for (let seqNum = 0; seqNum <= 32; seqNum++) {
      const expected = range(Math.min(seqNum - (seqNum % 3), 30), 30)
      equal(seqNumsOf(await read(log, { from: { seqNum } })), expected, `records from ${seqNum}`)
    }
  },
  async 'a read ends with the block that contains the record before endSeqNum'(harness) {
    const log = await threesOf(harness, 10)
    for (let endSeqNum = 0; endSeqNum <= 32; endSeqNum++) {
      const expected = range(0, Math.min(3 * Math.ceil(endSeqNum / 3), 30))
      equal(seqNumsOf(await read(log, { endSeqNum })), expected, `records up to ${endSeqNum}`)
    }
    for (const [seqNum, endSeqNum, expected] of [
      [4, 4, []],
      [5, 4, []],
      [9, 3, []],
      [30, 30, []],
      [4, 5, [3, 4, 5]],
    ] as const) {
      const blocks = await read(log, { from: { seqNum }, endSeqNum })
      equal(seqNumsOf(blocks), expected, `records from ${seqNum} to ${endSeqNum}`)
    }
  },
  async 'a read from a timestamp begins with the first block that reaches it'(harness) {
    const log = await harness.log()
    for (const timestamp of [100, 200, 200, 200, 300, 500]) {
      await log.appendUnmergeable(1, { count: 2, timestamp })
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
      equal(seqNumsOf(await read(log, { from: { timestamp } })), range(first, 12), `from ${timestamp}`)
    }
    const bounded = await read(log, { from: { timestamp: 200 }, endSeqNum: 4 })
    equal(seqNumsOf(bounded), [2, 3], 'records up to an end')
    equal(await read(log, { from: { timestamp: 500 }, endSeqNum: 10 }), [], 'an end before the start')
  },
  async 'a timestamp within a block finds that block'(harness) {
    const log = await threesOf(harness, 5)
    for (const seqNum of range(0, 15)) {
      const [first] = await read(log, { from: { timestamp: NOW + seqNum } })
      equal(first?.firstSeqNum, seqNum - (seqNum % 3), `block from the timestamp of record ${seqNum}`)
    }
  },
  async 'a read stops after the block that reaches bytesMax, and returns at least one block'(harness) {
    const log = await threesOf(harness, 10, 100)
    const size = blocksOf(log)[0]!.meteredBytes
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
      equal((await read(log, { bytesMax })).length, count, `number of blocks for ${bytesMax} bytes`)
    }
    const some = await read(log, { from: { timestamp: NOW + 4 }, bytesMax: 1 })
    equal(some.length, 1, 'number of blocks from a timestamp')
  },
  async 'any range returns the right records, whichever blocks the storage merges'(harness) {
    const log = await harness.log()
    for (let i = 0; i < 60; i++) await log.append({ count: 1 + (i % 4), expiresAt: i < 30 ? null : FAR })
    const end = log.head.tail.seqNum
    for (let seqNum = 0; seqNum <= end; seqNum += 7) {
      for (let endSeqNum = seqNum; endSeqNum <= end + 5; endSeqNum += 13) {
        await read(log, { from: { seqNum }, endSeqNum })
        await read(log, { from: { timestamp: NOW + seqNum }, endSeqNum })
        await read(log, { from: { seqNum }, endSeqNum, bytesMax: 50 })
      }
    }
  },
  async 'consecutive reads return every record once'(harness) {
    const log = await harness.log()
    await Promise.all(Array.from({ length: 1000 }, (_, i) => log.append({ bodyBytes: i % 50 })))
    const seqNums: number[] = []
    for (;;) {
      const blocks = await read(log, { from: { seqNum: seqNums.length }, bytesMax: 2000 })
      if (blocks.length === 0) break
      const next = seqNumsOf(blocks).filter((seqNum) => seqNum >= seqNums.length)
      ok(next.length > 0, 'a page makes no progress')
      seqNums.push(...next)
    }
    equal(seqNums, range(0, 1000), 'sequence numbers')
  },
  async 'merged blocks have at most 1,000 records and 1 MiB'(harness) {
    const log = await harness.log()
    const appends = Array.from({ length: 1500 }, () => log.append())
    for (let i = 0; i < 30; i++) appends.push(log.append({ bodyBytes: 100_000 }))
    await Promise.all(appends)
    await read(log, {})
  },
  // Tiny headers reach it before 1 MiB metered.
  async 'merged blocks stay within the encoded size of a batch'(harness) {
    const log = await harness.log()
    // Two of these blocks have less than 1 MiB metered, and more than twice that encoded.
    const headers = BATCH_METERED_BYTES_MAX / 8 - 4
    await Promise.all([log.append({ headers }), log.append({ headers })])
    for (let time = 0; time < 2; time++) {
      equal(await log.records(), [0, 1], 'records')
      await reclaimAll(log.session, { now: NOW, trimmedBefore: 0, blocksMax: 1_000 })
    }
  },
  async 'blocks of 1 MiB are read whole'(harness) {
    const log = await harness.log()
    for (let i = 0; i < 4; i++) {
      await log.append({ bodyBytes: BATCH_METERED_BYTES_MAX - 8, tag: `large-${i}` })
    }
    equal(seqNumsOf(await read(log, {})), [0, 1, 2, 3], 'records')
    const two = await read(log, { from: { seqNum: 1 }, bytesMax: BATCH_METERED_BYTES_MAX + 1 })
    equal(seqNumsOf(two), [1, 2], 'records of a bounded read')
  },
  async 'a large batch can be read from any record, and in one block if unsplit is set'(harness) {
    const log = await harness.log()
    await log.append()
    for (const bodyBytes of [60, 270, 1000]) await log.append({ count: 1000, bodyBytes })
    await log.append({ bodyBytes: 200_000 })
    for (const seqNum of [1, 500, 1001, 1777, 3001, 3002]) {
      for (const from of [{ seqNum }, { timestamp: NOW + seqNum }]) {
        for (const unsplit of [false, true]) {
          await read(log, { from, unsplit })
          await read(log, { from, unsplit, bytesMax: 1 })
          await read(log, { from, unsplit, bytesMax: 100_000 })
          await read(log, { from, unsplit, endSeqNum: 2222 })
        }
        const [first] = await log.session.read('a', { ...WHOLE_LOG, from, recordsMax: 1 })
        const holds = first === undefined || (first.firstSeqNum <= seqNum && first.endSeqNum > seqNum)
        ok(holds && (first === undefined) === seqNum > 3001, `the first block from ${seqNum} is another`)
      }
    }
    await log.measured()
  },
  async 'a read into lent memory returns the same blocks, whatever was in it'(harness) {
    const log = await harness.log()
    for (const bodyBytes of [10, 700, 60_000]) {
      for (let i = 0; i < 4; i++) await log.append({ count: 5, bodyBytes })
    }
    const memory = new Uint8Array(1_310_720).fill(0xee)
    for (const bytes of [0, 1_000, 100_000, memory.length]) {
      for (const seqNum of [0, 1, 23, 42]) {
        await read(log, { from: { seqNum }, memory: memory.subarray(0, bytes) })
      }
    }
  },
  async 'a view of a larger buffer is stored without the rest of the buffer'(harness) {
    const log = await harness.log()
    const request = log.request({ count: 2 })
    const [whole] = request.blocks
    const { data } = whole!
    const buffer = new Uint8Array(data.length + 20).fill(0xee)
    buffer.set(data, 10)
    const view = buffer.subarray(10, 10 + data.length)
    await log.session.append({ ...request, blocks: [{ ...whole!, data: view }] })
    equal((await read(log, {}))[0]?.data, data, 'bytes')
  },
}

/** A log with blocks of three records each that a storage must not merge. */
async function threesOf(harness: Harness, count: number, bodyBytes?: number): Promise<LogWriter> {
  const log = await harness.log()
  await log.appendUnmergeable(count, { count: 3, bodyBytes })
  return log
}

function blocksOf({ written }: LogWriter): StoredBlock[] {
  return written.map(({ block }) => block)
}

/** Reads, and compares the result with everything that was written. */
async function read(log: LogWriter, part: Partial<ReadRange>): Promise<StoredBlock[]> {
  const whole = { ...WHOLE_LOG, ...part }
  const blocks = await log.session.read(log.logId, whole)
  checkRead(log.written, whole, blocks)
  return blocks
}
