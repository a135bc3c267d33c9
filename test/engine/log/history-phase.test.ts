import { describe, expect, it, test } from 'vitest'
import type { ReadLimits } from '../../../src/core/read-limits.ts'
import { BlockSource, ReadAhead } from '../../../src/engine/log/block-source.ts'
import { type HistoryBatch, HistoryPhase } from '../../../src/engine/log/history-phase.ts'
import { ReadBudget } from '../../../src/engine/log/read-budget.ts'
import { ReadProgress } from '../../../src/engine/log/read-progress.ts'
import { PLAIN } from '../../../src/engine/log/record-codec.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { encodeRecords } from '../../../src/storage/block-codec.ts'
import type { Head, StoredBlock } from '../../../src/storage/contract.ts'
import { RecordBatch } from '../../../src/storage/record-batch.ts'

const UNBOUNDED = {
  count: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
  until: Number.POSITIVE_INFINITY,
}

function historyOf(stored: StoredBlock, limits: ReadLimits): [HistoryPhase, ReadProgress] {
  const budget = new ReadBudget(256 * 2 ** 20, systemClock)
  const session = { head: async () => ({}) as Head, read: async () => [stored] }
  const source = new BlockSource(
    session,
    new ReadAhead(budget),
    'log',
    PLAIN,
    budget.open(() => {}),
    { recordBytes: 1_024 },
  )
  const progress = new ReadProgress({ floor: stored.firstSeqNum, limits })
  return [
    new HistoryPhase(
      source,
      PLAIN.reader(undefined),
      progress,
      () => false,
      (blocks) => new RecordBatch(undefined, blocks),
    ),
    progress,
  ]
}

/** A block that claims to hold the records between its ends. */
function blockOf(firstSeqNum: number, endSeqNum: number, seqNums: readonly number[]): StoredBlock {
  const records = seqNums.map((seqNum) => ({ seqNum, timestamp: 1, headers: [], body: new Uint8Array(4) }))
  const meteredBytes = (endSeqNum - firstSeqNum) * 12
  const data = encodeRecords(records)
  return { firstSeqNum, endSeqNum, firstTimestamp: 1, lastTimestamp: 1, meteredBytes, expiresAt: null, data }
}

const numbersOf = ({ batch }: HistoryBatch) => batch?.records.map(({ seqNum }) => seqNum)

test('ends inside a block that the storage has merged since the tail was read', async () => {
  // A read that makes no progress would ask for its limits forever.
  let asked = 0
  const limits = {
    ...UNBOUNDED,
    get count() {
      if (++asked > 1_000) throw new Error('the read makes no progress')
      return 100
    },
  }
  const [history, progress] = historyOf(blockOf(0, 4, [0, 1, 2, 3]), limits)
  expect(numbersOf(await history.next(2))).toEqual([0, 1])
  expect(numbersOf(await history.next(2))).toBeUndefined()
  expect(progress.position).toBe(2)
  expect(numbersOf(await history.next(4))).toEqual([2, 3])
})

describe('rejects a block with other records than its summary', () => {
  it.each([[[5, 100, 6, 7]], [[5, 6]], [[9, 8, 7, 6, 5]], [[6, 7, 8]], [[5, 6, 7, 8]]])(
    '%j',
    async (seqNums) => {
      const [history] = historyOf(blockOf(5, 8, seqNums), { ...UNBOUNDED, count: 2 })
      await expect(history.next(8)).rejects.toMatchObject({ code: 'storage' })
    },
  )
})
