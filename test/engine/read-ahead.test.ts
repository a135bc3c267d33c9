import { expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { ReadAhead } from '../../src/engine/read-ahead.ts'
import { open, StorageFailure } from '../../src/index.ts'
import type { StorageSession } from '../../src/storage/contract.ts'
import { wrapped } from './wrapped-storage.ts'

/** A stream of `batches` batches of 1,000 records, opened anew, with what its storage is asked to read. */
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

test('a read of one batch asks for nothing more', async () => {
  const { hw, stream, asked } = await stored(5)
  expect((await stream.readBatch({ seqNum: 0 })).count).toBe(1_000)
  expect(asked).toEqual([0])
  await hw.close()
})

test.each<[string, number | undefined, readonly (readonly number[])[]]>([
  ['that is known to be long', 20_000, [[0, 1_000], [5_000], [], [], [], [13_000], [], [], [], []]],
  ['that turns out to be long', undefined, [[0], [1_000, 2_000], [6_000], [], [], [], [14_000], [], [], []]],
])(
  'a read %s is four batches ahead of its consumer, then eight, and no further',
  async (_, count, expected) => {
    const { hw, stream, asked } = await stored(20)
    const query = count === undefined ? { seqNum: 0 } : { seqNum: 0, count }
    const batches = stream.read(query)[Symbol.asyncIterator]()
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

test('what is ahead is bounded in bytes, too', async () => {
  const read: [records: number | undefined, bytes: number][] = []
  const { hw, stream } = await stored(20, (session) => (logId, range) => {
    read.push([range.recordsMax, range.bytesMax])
    return session.read(logId, range)
  })
  read.length = 0
  for await (const _ of stream.read({ seqNum: 0, count: 20_000 }));
  const MIB = 1_048_576
  expect(read).toEqual([
    [1_000, MIB],
    [4_000, 4 * MIB],
    [8_000, 4 * MIB],
    [7_000, 4 * MIB],
  ])
  await hw.close()
})

test('nothing is asked for behind the end, or beyond the bounds of the read', async () => {
  const read: [from: number, records: number | undefined][] = []
  const { hw, stream, asked } = await stored(6, (session) => (logId, range) => {
    if ('seqNum' in range.from) read.push([range.from.seqNum, range.recordsMax])
    return session.read(logId, range)
  })
  for await (const _ of stream.read({ seqNum: 0, count: 3_500 }));
  expect(read.splice(0)).toEqual([
    [0, 1_000],
    [1_000, 2_500],
  ])
  asked.length = 0
  for await (const _ of stream.read({ seqNum: 0, count: 1_000 }));
  expect(asked.splice(0)).toEqual([0])
  for await (const _ of stream.read({ seqNum: 3_000, count: 5_000 }));
  expect(asked).toEqual([3_000, 4_000])
  await hw.close()
})

test('what cannot be read ahead is asked for again when it is wanted', async () => {
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
    for await (const { records } of stream.read({ seqNum: 0, count: 5_000 })) {
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

test('one that fails after its read was given up harms nobody', async () => {
  let fail = (): void => {}
  const { hw, stream } = await stored(5, (session) => (logId, range) => {
    if (!('seqNum' in range.from) || range.from.seqNum !== 1_000) return session.read(logId, range)
    return new Promise((_, reject) => {
      fail = () => reject(new StorageFailure('io', 'too late', { nothingWritten: true }))
    })
  })
  const batches = stream.read({ seqNum: 0, count: 5_000 })[Symbol.asyncIterator]()
  await batches.next()
  await batches.return?.()
  fail()
  await hw.close()
})

test('when many reads wait, those that waited longest go without', async () => {
  const begin = readsAhead()
  const taken = await Promise.all(begin(24).map((one) => one.take()))
  expect(taken.map((blocks) => blocks?.length ?? 0)).toEqual([...Array(8).fill(0), ...Array(16).fill(1)])
})

test.each(['take', 'drop'] as const)('to %s what waits makes room for others', async (end) => {
  const begin = readsAhead()
  const waiting = begin(16)
  await Promise.all(waiting.splice(6).map((one) => one[end]()))
  waiting.push(...begin(10))
  const taken = await Promise.all(waiting.map((one) => one.take()))
  expect(taken.map((blocks) => blocks?.length ?? 0)).toEqual(Array(16).fill(1))
})

/** Begins so many reads of a block. */
function readsAhead() {
  const readAhead = new ReadAhead()
  const block = { firstSeqNum: 0, endSeqNum: 1 } as never
  return (count: number) =>
    Array.from({ length: count }, (_, from) => readAhead.begin(from, async () => [block]))
}
