import { expect, test } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { ReadAhead } from '../../../src/engine/log/block-source.ts'
import { ReadBudget } from '../../../src/engine/log/read-budget.ts'
import { open, systemClock } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { wrapped } from '../../support/index.ts'

/** A reopened stream of `batches` batches of 1,000 records, with the ranges read from its storage. */
async function stored(batches: number, read?: (session: StorageSession) => StorageSession['read']) {
  const storage = memory()
  const writer = await open({ storage })
  const records = Array.from({ length: 1_000 }, (_, index) => `${index}`)
  for (let batch = 0; batch < batches; batch++) await writer.basin('basin').stream('stream').append(records)
  await writer.close()
  const asked: number[] = []
  const watched = wrapped(storage, {}, (session) => ({
    read(logId, range) {
      if ('seqNum' in range.from) asked.push(range.from.seqNum)
      return (read?.(session) ?? session.read.bind(session))(logId, range)
    },
  }))
  const hw = await open({ storage: watched })
  asked.length = 0
  return { hw, stream: hw.basin('basin').stream('stream'), asked }
}

test('a read of one batch reads nothing ahead', async () => {
  const { hw, stream, asked } = await stored(5)
  expect((await stream.readBatch({ seqNum: 0 })).count).toBe(1_000)
  expect(asked).toEqual([0])
  await hw.close()
})

test.each<[string, number | undefined, readonly (readonly number[])[]]>([
  ['with a count beyond one batch', 20_000, [[0, 1_000], [5_000], [], [], [], [13_000], [], [], [], []]],
  [
    'that takes more than one batch',
    undefined,
    [[0], [1_000, 2_000], [6_000], [], [], [], [14_000], [], [], []],
  ],
])(
  'a read %s is four batches ahead of its consumer, then eight, and no further',
  async (_, count, expected) => {
    const { hw, stream, asked } = await stored(20)
    const query = count === undefined ? { seqNum: 0 } : { seqNum: 0, count }
    const batches = stream.follow(query).batches()
    /** From where the storage is asked to read as each batch is delivered. */
    const askedWith: (readonly number[])[] = []
    for (let batch = 0; batch < 10; batch++) {
      await batches.next()
      askedWith.push(asked.splice(0))
    }
    expect(askedWith).toEqual(expected)
    await batches.return?.()
    expect(asked).toEqual([])
    await hw.close()
  },
)

test('reading ahead is limited in bytes', async () => {
  const read: [records: number | undefined, bytes: number][] = []
  const { hw, stream } = await stored(20, (session) => (logId, range) => {
    read.push([range.recordsMax, range.bytesMax])
    return session.read(logId, range)
  })
  read.length = 0
  for await (const _ of stream.read({ seqNum: 0, count: 20_000 }).batches());
  const MIB = 1_048_576
  expect(read).toEqual([
    [1_000, MIB],
    [4_000, 4 * MIB],
    [8_000, 4 * MIB],
    [7_000, 4 * MIB],
  ])
  await hw.close()
})

test('nothing is read past the end or the limits of the read', async () => {
  const read: [from: number, records: number | undefined][] = []
  const { hw, stream, asked } = await stored(6, (session) => (logId, range) => {
    if ('seqNum' in range.from) read.push([range.from.seqNum, range.recordsMax])
    return session.read(logId, range)
  })
  for await (const _ of stream.read({ seqNum: 0, count: 3_500 }).batches());
  expect(read.splice(0)).toEqual([
    [0, 1_000],
    [1_000, 2_500],
  ])
  asked.length = 0
  for await (const _ of stream.read({ seqNum: 0, count: 1_000 }).batches());
  expect(asked.splice(0)).toEqual([0])
  for await (const _ of stream.read({ seqNum: 3_000, count: 5_000 }).batches());
  expect(asked).toEqual([3_000, 4_000])
  await hw.close()
})

test('blocks that could not be read ahead are read again when they are needed', async () => {
  let fails = 1
  const { hw, stream } = await stored(5, (session) => async (logId, range) => {
    const isSecond = 'seqNum' in range.from && range.from.seqNum === 1_000
    if (isSecond && fails > 0) {
      fails--
      throw new StorageFailure('io', 'a disk that stutters', { nothingWritten: true })
    }
    return session.read(logId, range)
  })
  const read = async () => {
    const seqNums: number[] = []
    for await (const { records } of stream.read({ seqNum: 0, count: 5_000 }, { as: 'bytes' }).batches()) {
      for (const { seqNum } of records) seqNums.push(seqNum)
    }
    return seqNums
  }
  const all = Array.from({ length: 5_000 }, (_, seqNum) => seqNum)
  expect(await read()).toEqual(all)
  expect(fails).toBe(0)
  fails = 2
  await expect(read()).rejects.toMatchObject({ code: 'storage' })
  await hw.close()
})

test('a failure to read ahead after the read has ended is ignored', async () => {
  let fail = (): void => {}
  const { hw, stream } = await stored(5, (session) => (logId, range) => {
    if (!('seqNum' in range.from) || range.from.seqNum !== 1_000) return session.read(logId, range)
    return new Promise((_, reject) => {
      fail = () => reject(new StorageFailure('io', 'too late', { nothingWritten: true }))
    })
  })
  const batches = stream.read({ seqNum: 0, count: 5_000 }).batches()
  await batches.next()
  await batches.return?.()
  fail()
  await hw.close()
})

test('the oldest blocks read ahead are dropped when many reads have some', async () => {
  const begin = readsAhead()
  const taken = await Promise.all(begin(24).map((one) => one.blocks))
  expect(taken.map((blocks) => blocks?.length ?? 0)).toEqual([...Array(8).fill(0), ...Array(16).fill(1)])
})

test('dropping what was read ahead makes room for other reads', async () => {
  const begin = readsAhead()
  const waiting = begin(16)
  for (const one of waiting.splice(6)) one.drop()
  waiting.push(...begin(10))
  const taken = await Promise.all(waiting.map((one) => one.blocks))
  expect(taken.map((blocks) => blocks?.length ?? 0)).toEqual(Array(16).fill(1))
})

/** Begins so many reads of a block. */
function readsAhead() {
  const readAhead = new ReadAhead(new ReadBudget(256 * 2 ** 20, systemClock))
  const block = { firstSeqNum: 0, endSeqNum: 1 } as never
  return (count: number) =>
    Array.from({ length: count }, (_, from) => readAhead.begin(from, async () => [block])!)
}
