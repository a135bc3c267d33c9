import { describe, expect, it } from 'vitest'
import type { HeadwaterError, ReadBatch, ReadQuery, Stream } from '../../../src/index.ts'
import { bodies, onEveryKindOfStorage, openEngine } from '../../support/index.ts'

/** The timers that an engine always has: one of its background work, one of the usage metrics. */
const BASELINE_TIMERS = 2

async function unary(stream: Stream, query: ReadQuery): Promise<string[] | number> {
  try {
    return bodies(await stream.readBatch(query))
  } catch (error) {
    return (error as HeadwaterError).status
  }
}

onEveryKindOfStorage(() =>
  describe('unary reads', () => {
    it.each<[ReadQuery, string[] | number]>([
      [{ seqNum: 0 }, ['a', 'b', 'c']],
      [{ seqNum: 3 }, []],
      [{ seqNum: 4 }, 416],
      [{ seqNum: 9, clamp: true }, []],
      [{}, ['a', 'b', 'c']],
      [{ tailOffset: 2 }, ['b', 'c']],
      [{ timestamp: 20 }, ['b', 'c']],
      [{ timestamp: 31 }, []],
      [{ seqNum: 0, count: 2 }, ['a', 'b']],
      [{ seqNum: 0, bytes: 18 }, ['a', 'b']],
      [{ seqNum: 0, until: 30 }, ['a', 'b']],
      [{ seqNum: 0, timestamp: 0 }, 422],
      [{ seqNum: -1 }, 422],
    ])('%j returns %j', async (query, expected) => {
      const engine = await openEngine()
      await engine.stream.append([
        { body: 'a', timestamp: 10 },
        { body: 'b', timestamp: 20 },
      ])
      await engine.stream.append({ body: 'c', timestamp: 30 })
      expect(await unary(engine.stream, query)).toEqual(expected)
      expect(engine.hw.stats().openReads).toBe(0)
    })

    it('returns at most 1,000 records and 1 MiB', async () => {
      const engine = await openEngine()
      const { stream } = engine
      await stream.append(Array.from({ length: 700 }, () => 'x'))
      await stream.append(Array.from({ length: 700 }, () => 'y'))
      expect((await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })).records).toHaveLength(1000)
      const half = new Uint8Array(600_000)
      await stream.append(half)
      await stream.append(half)
      expect((await stream.readBatch({ seqNum: 1400 }, { as: 'bytes' })).records).toHaveLength(1)
      expect((await stream.readBatch({ seqNum: 1, count: 5000 }, { as: 'bytes' })).records).toHaveLength(1000)
    })

    it('waits for the first append up to the requested time', async () => {
      const engine = await openEngine()
      const { stream, clock } = engine
      const first = stream.readBatch({ seqNum: 0, waitMs: 10_000 })
      await clock.advance('9s')
      await stream.append(['a', 'b'])
      const batch = await first
      expect([bodies(batch), batch.tail]).toEqual([['a', 'b'], { seqNum: 2, timestamp: 1_009_000 }])
      let none: ReadBatch<'string'> | undefined
      const second = stream.readBatch({ tailOffset: 0, waitMs: 600_000 }).then((empty) => {
        none = empty
      })
      await clock.advance('59s')
      expect(none).toBeUndefined()
      await clock.advance('1s')
      await second
      expect([none?.records, none?.tail]).toEqual([[], undefined])
      expect(clock.pending).toBe(BASELINE_TIMERS)
    })

    it('does not wait when there are records', async () => {
      const engine = await openEngine()
      await engine.stream.append('a')
      const batch = await engine.stream.readBatch({ seqNum: 0, waitMs: 10_000 })
      expect([bodies(batch), batch.tail?.seqNum]).toEqual([['a'], 1])
    })

    it('a long poll ends when its signal aborts, and releases everything', async () => {
      const engine = await openEngine()
      const controller = new AbortController()
      const poll = engine.stream.readBatch({ tailOffset: 0, waitMs: 60_000 }, { signal: controller.signal })
      await engine.clock.settle()
      expect(engine.hw.stats()).toMatchObject({ openReads: 1, waitingReads: 1 })
      controller.abort(new Error('enough'))
      await expect(poll).rejects.toThrow('enough')
      expect(engine.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
      expect(engine.clock.pending).toBe(BASELINE_TIMERS)
    })
  }),
)

describe('a read of a missing stream', () => {
  it('creates nothing unless it is asked to', async () => {
    const engine = await openEngine()
    const stream = engine.hw.basin('missing').stream('stream')
    const missing = engine.hw.basin('basin').stream('missing')
    for (const [handle, code] of [
      [stream, 'basin_not_found'],
      [missing, 'stream_not_found'],
    ] as const) {
      await expect(handle.checkTail()).rejects.toMatchObject({ code })
      await expect(handle.readBatch()).rejects.toMatchObject({ code })
      await expect(handle.read().toArray()).rejects.toMatchObject({ code })
      await expect(handle.follow().batches().next()).rejects.toMatchObject({ code })
      await expect(handle.json().follow().batches().next()).rejects.toMatchObject({ code })
    }
    const iterator = missing.follow({}, { create: true }).batches()
    const first = iterator.next()
    await engine.clock.settle()
    await missing.append('a')
    expect(bodies((await first).value!)).toEqual(['a'])
    await iterator.return()
    expect((await stream.readBatch({}, { create: true })).records).toEqual([])
  })
})
