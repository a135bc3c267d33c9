import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Engine, Stream } from '../../../src/index.ts'
import { encodeRecords } from '../../../src/storage/block-codec.ts'
import type { ReadRange } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { bodies, deferred, openEngine, outcomeOf, testStorage, wrapped } from '../../support/index.ts'

describe('reads', () => {
  it('a long poll with records does not wait for those after expired ones', async () => {
    const { hw, clock, stream } = await openEngine()
    const basin = hw.basin('basin')
    await basin.stream('stream').reconfigure({ retentionPolicy: 'infinite' })
    await stream.append('kept')
    await basin.stream('stream').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
    await stream.append('expires')
    await clock.advance('5m')
    let result: string[] | undefined
    const done = stream.readBatch({ seqNum: 0, waitMs: 60_000 }).then((batch) => {
      result = bodies(batch)
    })
    await clock.settle()
    const atOnce = result
    await clock.advance('2m')
    await done
    expect(result).toEqual(['kept'])
    expect(atOnce).toEqual(['kept'])
  })

  it('lastSeqNum is the number of the last record of the batch', async () => {
    const { hw, clock, stream } = await openEngine()
    const basin = hw.basin('basin')
    await basin.stream('stream').reconfigure({ retentionPolicy: 'infinite' })
    await stream.append('kept')
    await basin.stream('stream').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
    await stream.append('expires')
    await clock.advance('2s')
    const batch = await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })
    expect(batch.records.map(({ seqNum }) => seqNum)).toEqual([0])
    expect(batch.lastSeqNum).toBe(0)
  })

  it('a read of a few bytes does not read a MiB from the storage', async () => {
    let blocks = 0
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId: string, range: ReadRange) => {
        const found = await session.read(logId, range)
        blocks += found.length
        return found
      },
    }))
    const { stream } = await openEngine({ storage })
    await Promise.all(Array.from({ length: 300 }, () => stream.append('x')))
    blocks = 0
    expect((await stream.readBatch({ seqNum: 0, count: 1 })).count).toBe(1)
    expect((await stream.readBatch({ seqNum: 0, bytes: 9 })).count).toBe(1)
    expect(blocks).toBe(2)
  })

  it('a cursor that is closed while it reads resolves to undefined, even if the storage fails', async () => {
    let hold = false
    const gate = deferred()
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId: string, range: ReadRange) => {
        if (!hold) return session.read(logId, range)
        await gate.promise
        throw new StorageFailure('io', 'failed', { nothingWritten: true })
      },
    }))
    const { clock, stream } = await openEngine({ storage })
    for (let i = 0; i < 3; i++) await stream.append([new Uint8Array(1_000_000)])
    const cursor = (await stream.openCursor({ seqNum: 0 }, {}))!
    await cursor.next()
    await cursor.next()
    hold = true
    const pending = Promise.resolve(cursor.next()).then(
      (event) => event,
      (error) => `rejected: ${error.code}`,
    )
    await clock.settle()
    cursor.close()
    gate.resolve()
    expect(await pending).toBe(undefined)
  })

  it('closing the engine cancels the timers of a follower whose consumer is busy', async () => {
    const { hw, clock, stream } = await openEngine()
    const iterator = stream.follow({ seqNum: 0, waitMs: 3_600_000 })[Symbol.asyncIterator]()
    await stream.append('0')
    await iterator.next()
    const waiting = iterator.next()
    await clock.settle()
    await stream.append('1')
    await waiting
    // The consumer is busy with the batch.
    await hw.close()
    expect({ timers: clock.pending, openReads: hw.stats().openReads }).toEqual({ timers: 0, openReads: 0 })
  })

  it('timestamps are whole milliseconds on any clock', async () => {
    const { clock, stream } = await openEngine()
    await clock.advance('1.5ms')
    const ack = await stream.append('x')
    const [record] = (await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })).records
    expect(record!.timestamp).toBe(ack.start.timestamp)
    expect((await stream.readBatch({ timestamp: ack.start.timestamp })).count).toBe(1)
  })

  it('an error of the storage while it reads ahead ends a session only if it lasts', async () => {
    let fails = 0
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId: string, range: ReadRange) => {
        // What follows the second batch is read ahead.
        const isAhead = 'seqNum' in range.from && range.from.seqNum >= 2_400
        if (isAhead && fails-- > 0) throw new StorageFailure('io', 'it stutters', { nothingWritten: true })
        return session.read(logId, range)
      },
    }))
    const { stream } = await openEngine({ storage })
    for (let i = 0; i < 6; i++) await stream.append(Array.from({ length: 600 }, () => 'x'))
    const read = async () =>
      (await stream.read({ seqNum: 0, count: 3_600 }, { as: 'bytes' }).toArray()).length
    fails = 1
    expect(await read()).toBe(3_600)
    fails = 100
    await expect(read()).rejects.toMatchObject({ code: 'storage' })
    fails = 0
    expect(await read()).toBe(3_600)
  })

  it.each<[string, readonly number[]]>([
    ['beyond its end', [0, 100, 1]],
    ['too few', [0, 1]],
    ['too many', [0, 1, 2, 3]],
    ['out of order', [2, 1, 0]],
    ['before its begin', [-1, 0, 1]],
  ])('a block with other records than it says is damaged: %s', async (_, seqNums) => {
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId: string, range: ReadRange) => {
        const [block] = await session.read(logId, range)
        const records = seqNums.map((number) => ({
          seqNum: number + 1,
          timestamp: 1_000_000,
          headers: [],
          body: new Uint8Array(1),
        }))
        return [{ ...block!, firstSeqNum: 1, endSeqNum: 4, data: encodeRecords(records) }]
      },
    }))
    const { stream } = await openEngine({ storage })
    await stream.append('first')
    await stream.append(['a', 'b', 'c'])
    // A part of it.
    const query = { seqNum: 1, count: 2 }
    await expect(stream.readBatch(query)).rejects.toMatchObject({ code: 'storage' })
    await expect(stream.read(query).toArray()).rejects.toMatchObject({ code: 'storage' })
  })

  it.each<[string, (target: { hw: Engine; stream: Stream }) => Promise<unknown>, code: string]>([
    ['its stream is deleted', ({ stream }) => stream.delete(), 'stream_deleted'],
    ['the engine closes', ({ hw }) => hw.close(), 'closed'],
  ])('a batch is rejected when %s while the storage reads', async (_, end, code) => {
    const [gate, reading] = [deferred(), deferred()]
    const storage = wrapped(testStorage(), {}, (session) => ({
      read: async (logId: string, range: ReadRange) => {
        const blocks = await session.read(logId, range)
        reading.resolve()
        await gate.promise
        return blocks
      },
    }))
    const engine = await openEngine({ storage })
    await engine.stream.append('a')
    const outcome = outcomeOf(engine.stream.readBatch())
    await reading.promise
    const ending = end(engine)
    if (code === 'stream_deleted') await ending
    gate.resolve()
    expect(await outcome).toBe(code)
    await ending
  })
})

const bounds = fc.record(
  {
    count: fc.integer({ min: 0, max: 30 }),
    bytes: fc.integer({ min: 0, max: 400 }),
    untilMs: fc.integer({ min: -20_000, max: 4_000 }),
  },
  { requiredKeys: [] },
)
const history = fc.record({
  batches: fc.array(fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 8,
  }),
  trimmed: fc.integer({ min: 0, max: 10 }),
  ageMs: fc.integer({ min: 0, max: 12_000 }),
  reads: fc.array(fc.tuple(bounds, fc.integer({ min: 0, max: 40 })), { minLength: 1, maxLength: 10 }),
})

it('a batch holds the records that a session of the same limits delivers', { tags: ['slow'] }, async () => {
  await fc.assert(
    fc.asyncProperty(history, async ({ batches, trimmed, ageMs, reads }) => {
      const { hw, clock, stream } = await openEngine()
      await stream.reconfigure({ retentionPolicy: { ageSeconds: 10 }, timestamping: { mode: 'arrival' } })
      for (const sizes of batches) {
        await stream.append(sizes.map((size) => 'x'.repeat(size)))
        await clock.advance(1_500)
      }
      if (trimmed > 0) await stream.trim(trimmed)
      await clock.advance(ageMs)
      const { seqNum: end } = await stream.checkTail()
      for (const [{ untilMs, ...others }, start] of reads) {
        const until = untilMs === undefined ? {} : { until: clock.now() + untilMs }
        const query = { ...others, ...until, seqNum: Math.min(start, end) }
        const { records, tail } = await stream.readBatch(query)
        expect(records).toEqual(await stream.read(query).toArray())
        const endsAtTail = records.at(-1)?.seqNum === end - 1
        if (records.length > 0) expect(tail?.seqNum).toBe(endsAtTail ? end : undefined)
      }
      expect(hw.stats()).toMatchObject({ openSessions: 0, readBufferBytes: 0 })
      await hw.close()
    }),
  )
})
