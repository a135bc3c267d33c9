import { describe, expect, it, test } from 'vitest'
import { BlockSource } from '../../src/engine/block-source.ts'
import { CatchUp } from '../../src/engine/catch-up.ts'
import { ReadAhead } from '../../src/engine/read-ahead.ts'
import { encodeRecords } from '../../src/storage/block-codec.ts'
import type { Head, StorageSession, StoredBlock } from '../../src/storage/contract.ts'

const UNBOUNDED = {
  count: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
  until: Number.POSITIVE_INFINITY,
}

function catchUp(stored: StoredBlock): CatchUp {
  const session: Partial<StorageSession> = { head: async () => ({}) as Head, read: async () => [stored] }
  const source = new BlockSource({ session: session as StorageSession, readAhead: new ReadAhead() }, 'log')
  return new CatchUp(source, undefined, 0, stored.firstSeqNum)
}

/** A block that says it holds what is between its ends. */
function blockOf(firstSeqNum: number, endSeqNum: number, seqNums: readonly number[]): StoredBlock {
  const records = seqNums.map((seqNum) => ({ seqNum, timestamp: 1, headers: [], body: new Uint8Array(4) }))
  const meteredBytes = (endSeqNum - firstSeqNum) * 12
  const data = encodeRecords(records)
  return { firstSeqNum, endSeqNum, firstTimestamp: 1, lastTimestamp: 1, meteredBytes, expiresAt: null, data }
}

const numbersOf = ({ batch }: Awaited<ReturnType<CatchUp['next']>>) =>
  batch?.records.map(({ seqNum }) => seqNum)

test('an end that lies inside a block that was merged meanwhile is an end', async () => {
  const reading = catchUp(blockOf(0, 4, [0, 1, 2, 3]))
  // A read that goes round in circles would ask for its limits for ever.
  let asked = 0
  const limits = {
    ...UNBOUNDED,
    get count() {
      if (++asked > 1_000) throw new Error('it goes round in circles')
      return 100
    },
  }
  expect(numbersOf(await reading.next(2, limits))).toEqual([0, 1])
  expect(numbersOf(await reading.next(2, limits))).toBeUndefined()
  expect(reading.position).toBe(2)
  expect(numbersOf(await reading.next(4, limits))).toEqual([2, 3])
})

describe('a block that holds other records than it says is damaged', () => {
  it.each([[[5, 100, 6, 7]], [[5, 6]], [[9, 8, 7, 6, 5]], [[6, 7, 8]], [[5, 6, 7, 8]]])(
    '%j',
    async (seqNums) => {
      const reading = catchUp(blockOf(5, 8, seqNums))
      await expect(reading.next(8, { ...UNBOUNDED, count: 2 })).rejects.toMatchObject({ code: 'storage' })
    },
  )
})
