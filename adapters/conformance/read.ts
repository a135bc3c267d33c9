import { BATCH_METERED_BYTES_MAX, INTEGER_MAX } from '../../src/model/limits.ts'
import type { ReadRange } from '../../src/storage/contract.ts'
import { equal, ok } from './assertions.ts'
import { FAR, NOW, range, seqNumsOf } from './blocks.ts'
import { onLog } from './harness.ts'
import { reclaimAll } from './log-writer.ts'

/** Reads of a log with ten blocks of three records, and the sequence numbers that they return. */
const READS: readonly (readonly [part: Partial<ReadRange>, first: number, end: number])[] = [
  [{ recordsMax: 1 }, 0, 3],
  [{ recordsMax: 3 }, 0, 3],
  [{ recordsMax: 4 }, 0, 6],
  [{ recordsMax: 99 }, 0, 30],
  [{ from: { seqNum: 4 }, endSeqNum: 4 }, 0, 0],
  [{ from: { seqNum: 5 }, endSeqNum: 4 }, 0, 0],
  [{ from: { seqNum: 9 }, endSeqNum: 3 }, 0, 0],
  [{ from: { seqNum: 4 }, endSeqNum: 5 }, 3, 6],
  [{ from: { seqNum: 4 }, recordsMax: 4 }, 3, 9],
  [{ from: { timestamp: NOW + 4 }, endSeqNum: 7 }, 3, 9],
  [{ from: { timestamp: NOW + 9 }, endSeqNum: 9 }, 0, 0],
  [{ from: { timestamp: NOW + 4 }, bytesMax: 1 }, 3, 6],
  [{ from: { timestamp: 0 }, bytesMax: 0 }, 0, 3],
]

/** Reads of six blocks of two records, of which several have the same timestamp. */
const TIMESTAMPS = [100, 200, 200, 200, 300, INTEGER_MAX]
const READS_BY_TIME: readonly (readonly [timestamp: number, first: number])[] = [
  [0, 0],
  [101, 2],
  [200, 2],
  [201, 8],
  [301, 10],
  [INTEGER_MAX, 10],
]

export const readCases = onLog({
  async 'an empty log reads as empty'(log) {
    equal(await log.read(), [], 'from a sequence number')
    equal(await log.read({ from: { timestamp: 0 } }), [], 'from a timestamp')
  },
  async 'a read returns whole blocks, from the start up to the first bound that is reached'(log) {
    await log.appendUnmergeable(10, { count: 3 })
    for (const [part, first, end] of READS) {
      equal(seqNumsOf(await log.read(part)), range(first, end), JSON.stringify(part))
    }
    for (let seqNum = 0; seqNum <= 32; seqNum++) {
      const rest = range(Math.min(seqNum - (seqNum % 3), 30), 30)
      equal(seqNumsOf(await log.read({ from: { seqNum } })), rest, `records from ${seqNum}`)
      const since = await log.read({ from: { timestamp: NOW + seqNum } })
      equal(seqNumsOf(since), rest, `records from the timestamp of ${seqNum}`)
      const before = range(0, Math.min(3 * Math.ceil(seqNum / 3), 30))
      equal(seqNumsOf(await log.read({ endSeqNum: seqNum })), before, `records up to ${seqNum}`)
    }
    const size = log.written[0]!.block.meteredBytes
    for (const [bytesMax, count] of [
      [0, 1],
      [size - 1, 1],
      [size, 1],
      [size + 1, 2],
      [3 * size, 3],
    ] as const) {
      equal((await log.read({ bytesMax })).length, count, `number of blocks for ${bytesMax} bytes`)
    }
  },
  async 'a read from a timestamp that several blocks have begins with the first of them'(log) {
    for (const timestamp of TIMESTAMPS) await log.appendUnmergeable(1, { count: 2, timestamp })
    for (const [timestamp, first] of READS_BY_TIME) {
      equal(seqNumsOf(await log.read({ from: { timestamp } })), range(first, 12), `from ${timestamp}`)
    }
  },
  async 'any range returns the right records, whichever blocks the storage merges'(log) {
    for (let i = 0; i < 60; i++) await log.append({ count: 1 + (i % 4), expiresAt: i < 30 ? null : FAR })
    const end = log.head.tail.seqNum
    for (let seqNum = 0; seqNum <= end; seqNum += 7) {
      for (let endSeqNum = seqNum; endSeqNum <= end + 5; endSeqNum += 13) {
        await log.read({ from: { seqNum }, endSeqNum })
        await log.read({ from: { timestamp: NOW + seqNum }, endSeqNum })
        await log.read({ from: { seqNum }, endSeqNum, bytesMax: 50 })
      }
    }
  },
  async 'merged blocks stay within 1,000 records, 1 MiB and the encoded size of a batch'(log) {
    const appends = Array.from({ length: 1500 }, () => log.append())
    for (let i = 0; i < 30; i++) appends.push(log.append({ bodyBytes: 100_000 }))
    // Two blocks of tiny headers have less than 1 MiB metered, and more than twice that encoded.
    const headers = BATCH_METERED_BYTES_MAX / 8 - 4
    appends.push(log.append({ headers }), log.append({ headers }))
    await Promise.all(appends)
    await log.check()
    await reclaimAll(log.session, { now: NOW })
  },
  async 'a large batch can be read from any record'(log) {
    await log.append()
    for (const bodyBytes of [60, 270, 1000]) await log.append({ count: 1000, bodyBytes })
    await log.append({ bodyBytes: 200_000 })
    for (const seqNum of [1, 500, 1001, 1777, 3001, 3002]) {
      for (const from of [{ seqNum }, { timestamp: NOW + seqNum }]) {
        await log.read({ from })
        await log.read({ from, bytesMax: 1 })
        await log.read({ from, bytesMax: 100_000 })
        await log.read({ from, endSeqNum: 2222 })
        const [first] = await log.read({ from, recordsMax: 1 })
        const holds = first === undefined || (first.firstSeqNum <= seqNum && first.endSeqNum > seqNum)
        ok(holds && (first === undefined) === seqNum > 3001, `the first block from ${seqNum} is another`)
      }
    }
  },
  async 'a read into lent memory returns the same blocks, whatever was in it'(log) {
    for (const bodyBytes of [10, 700, 60_000]) {
      for (let i = 0; i < 4; i++) await log.append({ count: 5, bodyBytes })
    }
    const memory = new Uint8Array(1_310_720).fill(0xee)
    for (const bytes of [0, 1_000, 100_000, memory.length]) {
      for (const seqNum of [0, 1, 23, 42]) {
        await log.read({ from: { seqNum }, memory: memory.subarray(0, bytes) })
      }
    }
  },
  async 'a view of a larger buffer is stored without the rest of the buffer'(log) {
    const request = log.request({ count: 2 })
    const [whole] = request.blocks
    const { data } = whole!
    const buffer = new Uint8Array(data.length + 20).fill(0xee)
    buffer.set(data, 10)
    const view = buffer.subarray(10, 10 + data.length)
    await log.session.append({ ...request, blocks: [{ ...whole!, data: view }] })
    equal((await log.read())[0]?.data, data, 'bytes')
  },
})
