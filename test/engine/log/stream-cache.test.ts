import { queryObjects } from 'node:v8'
import { describe, expect, it, vi } from 'vitest'
import { AppendPipeline } from '../../../src/engine/log/append-pipeline.ts'
import { LiveTail } from '../../../src/engine/log/live-tail.ts'
import { StreamLog } from '../../../src/engine/log/stream-log.ts'
import { open } from '../../../src/index.ts'
import type { AppendRequest, ReadRange, ReclaimLimits } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  bodies,
  gated,
  openEngine,
  outcomeOf,
  readAll,
  testClock,
  testStorage,
  wrapped,
} from '../../support/index.ts'

describe('the stream cache', () => {
  for (const shared of [false, true]) {
    it(`keeps a stream whose append waits for room, so that followers and tail checks see it (shared: ${shared})`, async () => {
      const storage = gated(testStorage(), { shared })
      const { hw, clock } = await openEngine({
        storage,
        limits: { cachedStreams: 1, appendInFlightBytes: 1_048_576 },
      })
      const basin = hw.basin('basin')
      await basin.ensureStream('s')
      storage.holding = true
      const big = basin.stream('big').append(new Uint8Array(1_000_000))
      await clock.settle()
      const waiting = basin.stream('s').append(new Uint8Array(100_000))
      await clock.settle()
      expect(hw.stats().waitingAppends).toBe(1)
      // Other streams are used, so `s` is evicted.
      for (const name of ['p', 'q', 'r']) {
        await basin.ensureStream(name)
        await basin.stream(name).checkTail()
      }
      const seen: number[] = []
      const subscription = basin
        .stream('s')
        .follow({ seqNum: 0 }, { as: 'bytes' })
        .records$.subscribe(({ seqNum }) => seen.push(seqNum))
      await clock.settle()
      storage.holding = false
      storage.release()
      await big
      await waiting
      await clock.settle()
      const tail = await basin.stream('s').checkTail()
      subscription.unsubscribe()
      expect({ seen, tail: tail.seqNum }).toEqual({ seen: [0], tail: 1 })
    })
  }

  it('drops the append pipeline of an idle stream when another stream gets one', async () => {
    const { hw } = await openEngine()
    const enqueue = vi.spyOn(AppendPipeline.prototype, 'enqueue')
    for (const name of ['a', 'b', 'b', 'a', 'a']) await hw.basin('basin').stream(name).append('x')
    const pipelines = [...new Set(enqueue.mock.contexts)]
    expect(enqueue.mock.contexts.map((pipeline) => pipelines.indexOf(pipeline))).toEqual([0, 1, 1, 2, 2])
    enqueue.mockRestore()
    await hw.close()
  })

  it('drops the live tail of a stream when its last follower leaves', async () => {
    const { hw, stream, clock } = await openEngine()
    const follow = vi.spyOn(LiveTail.prototype, 'follow')
    const subscribe = () => stream.follow({}).records$.subscribe()
    const [first, second] = [subscribe(), subscribe()]
    await clock.settle()
    first.unsubscribe()
    const third = subscribe()
    await clock.settle()
    second.unsubscribe()
    third.unsubscribe()
    const last = subscribe()
    await clock.settle()
    const tails = [...new Set(follow.mock.contexts)]
    expect(follow.mock.contexts.map((tail) => tails.indexOf(tail))).toEqual([0, 0, 0, 1])
    follow.mockRestore()
    last.unsubscribe()
    await hw.close()
  })

  it('removes streams that other engines delete', async () => {
    const storage = testStorage()
    const clock = testClock({ now: 1_000_000 })
    const { hw } = await openEngine({ storage, clock, limits: { cachedStreams: 2 } })
    const other = await open({ storage, clock })
    for (let i = 0; i < 50; i++) {
      await hw.basin('basin').stream('stream').append(`${i}`)
      await other.basin('basin').stream('stream').delete()
      await clock.settle()
    }
    expect(hw.stats().cachedStreams).toBeLessThanOrEqual(2)
    await other.close()
  })

  it('delivers appends of other engines to followers, whenever they are made', async () => {
    const missed: number[] = []
    for (let offset = 0; offset < 60; offset++) {
      const storage = testStorage()
      const clock = testClock({ now: 1_000_000 })
      const { hw, stream } = await openEngine({ storage, clock })
      const writer = await open({ storage, clock })
      const elsewhere = writer.basin('basin').stream('stream')
      await elsewhere.append('0')
      const seen: string[] = []
      const subscription = stream
        .follow({ seqNum: 0 })
        .batches$.subscribe((batch) => seen.push(...bodies(batch)))
      await clock.settle()
      const one = elsewhere.append('1')
      for (let i = 0; i < offset; i++) await null
      const two = elsewhere.append('2')
      await one
      await two
      await clock.settle()
      if (seen.join() !== '0,1,2') missed.push(offset)
      subscription.unsubscribe()
      await hw.close()
      await writer.close()
    }
    expect(missed).toEqual([])
  })

  it('retries when a change of another engine could not be read', async () => {
    const inner = testStorage()
    let failing = false
    const storage = wrapped(inner, {}, (session) => ({
      head: async (logId: string) => {
        if (failing) throw new StorageFailure('io', 'for a moment', { nothingWritten: true })
        return session.head(logId)
      },
    }))
    const clock = testClock({ now: 1_000_000 })
    const { stream } = await openEngine({ storage, clock })
    const writer = await open({ storage: inner, clock })
    const seen: string[] = []
    stream.follow().batches$.subscribe((batch) => seen.push(...bodies(batch)))
    await clock.settle()
    failing = true
    await writer.basin('basin').stream('stream').append('1')
    await clock.settle()
    failing = false
    await clock.advance('10m')
    expect(seen).toEqual(['1'])
    await writer.close()
  })

  it('does not keep a stream that is deleted while it is loaded', async () => {
    let hold = false
    let go = () => {}
    const storage = wrapped(testStorage(), { shared: false }, (session) => ({
      head: async (logId: string) => {
        const head = await session.head(logId)
        if (hold)
          await new Promise<void>((resolve) => {
            go = resolve
          })
        return head
      },
    }))
    const clock = testClock({ now: 1_000_000 })
    const first = await openEngine({ storage, clock })
    await first.stream.append('0')
    await first.hw.close()
    const hw = await open({ storage, clock, autoCreate: false })
    await clock.settle()
    const basin = hw.basin('basin')
    hold = true
    const lookUp = outcomeOf(basin.stream('stream').checkTail())
    await clock.settle()
    await basin.stream('stream').delete()
    hold = false
    go()
    await lookUp
    expect({
      tail: await outcomeOf(basin.stream('stream').checkTail()),
      // The same after it was recreated: an empty stream.
      recreated: await basin
        .createStream('stream')
        .then(() => basin.stream('stream').checkTail())
        .then(({ seqNum }) => seqNum),
      first: await outcomeOf(basin.stream('stream').append('first', { matchSeqNum: 0 })),
    }).toEqual({ tail: 'stream_not_found', recreated: 0, first: 'ok' })
  })

  it('deletes empty streams even if another stream is damaged', async () => {
    const inner = testStorage()
    let damaged = ''
    const storage = wrapped(inner, {}, (session) => ({
      read: async (logId: string, range: ReadRange) => {
        if (logId === damaged) throw new StorageFailure('corrupt', 'damaged', { nothingWritten: true })
        return session.read(logId, range)
      },
      append: async (request: AppendRequest) => {
        damaged = request.logId
        return session.append(request)
      },
    }))
    const { hw, clock } = await openEngine({ storage, autoCreate: false })
    const basin = hw.basin('basin')
    await basin.createStream('damaged', { deleteOnEmpty: { minAgeSeconds: 10 } })
    await basin.stream('damaged').append('x')
    await clock.advance('1s')
    await basin.createStream('empty', { deleteOnEmpty: { minAgeSeconds: 10 } })
    await clock.advance('1h')
    const names = (await basin.listStreams()).items.map(({ name }) => name)
    expect(names).not.toContain('empty')
  })

  it('evicts streams when there are too many, even while the least recently used are followed', async () => {
    const { hw } = await openEngine({ limits: { cachedStreams: 10 } })
    const basin = hw.basin('basin')
    const subscriptions = []
    for (let i = 0; i < 70; i++) {
      subscriptions.push(
        basin.stream(`followed/${i}`).follow({}, { as: 'bytes', create: true }).records$.subscribe(),
      )
      await basin.ensureStream(`followed/${i}`)
    }
    for (let i = 0; i < 300; i++) {
      await basin.ensureStream(`other/${i}`)
      await basin.stream(`other/${i}`).checkTail()
    }
    const { cachedStreams } = hw.stats()
    for (const subscription of subscriptions) subscription.unsubscribe()
    await hw.close()
    // One more, and the five additions (70 / 16) that the hand needs to pass the followed streams.
    expect(cachedStreams).toBeLessThanOrEqual(70 + 10 + 1 + 5)
  })

  it('keeps as many objects for 3,000 idle streams as for those that it may cache', async () => {
    const { hw } = await openEngine({ limits: { cachedStreams: 50 } })
    const basin = hw.basin('basin')
    const countOf = (type: unknown) => queryObjects(type as () => void, { format: 'count' })
    const before = [StreamLog, AppendPipeline].map(countOf)
    for (let i = 0; i < 3_000; i++) await basin.stream(`idle/${i}`).append('x')
    for (let i = 0; i < 3_000; i += 7) await basin.stream(`idle/${i}`).checkTail()
    const [logs, pipelines] = [StreamLog, AppendPipeline].map((type, i) => countOf(type) - before[i]!)
    // The one that was added last is beyond the limit until the next one is, and the newest pipeline has one.
    expect(logs).toBeLessThanOrEqual(52)
    expect(pipelines).toBeLessThanOrEqual(2)
    expect(hw.stats().cachedStreams).toBeLessThanOrEqual(51)
    await hw.close()
  })

  it('keeps few of the streams that are created, and those that are used again', async () => {
    const { hw } = await openEngine({ limits: { cachedStreams: 80 } })
    const basin = hw.basin('basin')
    for (let i = 0; i < 300; i++) await basin.stream(`s/${i}`).append('x')
    expect(hw.stats().cachedStreams).toBeLessThanOrEqual(2)
    for (let i = 0; i < 70; i++) await basin.stream(`s/${i}`).append('y')
    expect(hw.stats().cachedStreams).toBeGreaterThanOrEqual(70)
    for (let i = 0; i < 100; i++) await basin.stream(`t/${i}`).append('x')
    expect(hw.stats().cachedStreams).toBeLessThanOrEqual(73)
    await hw.close()
  })

  it('continues a stream that was evicted where it ended', async () => {
    const { hw } = await openEngine({ limits: { cachedStreams: 3 } })
    const basin = hw.basin('basin')
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 20; i++) {
        const ack = await basin.stream(`s/${i}`).append(`${round}`, { matchSeqNum: round })
        expect(ack.end.seqNum).toBe(round + 1)
      }
    }
    expect(await readAll(basin.stream('s/0'))).toEqual(['0', '1', '2', '3'])
    await hw.close()
  })

  it('concurrent reconfigurations in one engine all succeed', async () => {
    const { hw } = await openEngine()
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        outcomeOf(
          hw
            .basin('basin')
            .stream('stream')
            .reconfigure({ retentionPolicy: { ageSeconds: i + 1 } }),
        ),
      ),
    )
    expect(results.filter((result) => result !== 'ok')).toEqual([])
  })

  it('frees the bytes of a deleted stream soon, even shortly after a trim', async () => {
    let reclaims = 0
    const storage = wrapped(testStorage(), {}, (session) => ({
      reclaim: async (limits: ReclaimLimits) => {
        reclaims++
        return session.reclaim(limits)
      },
    }))
    const { hw, clock, stream } = await openEngine({ storage, trimGraceMs: 50_000 })
    await stream.append(['a', 'b'])
    await stream.trim(1)
    await hw.basin('basin').ensureStream('doomed')
    await clock.settle()
    reclaims = 0
    await hw.basin('basin').stream('doomed').delete()
    await clock.advance('1s')
    expect(reclaims).toBeGreaterThan(0)
  })

  it('treats a null in a configuration as an absent value', async () => {
    const { hw } = await openEngine()
    const basin = hw.basin('basin')
    const nulls = {
      storageClass: null,
      retentionPolicy: null,
      timestamping: null,
      deleteOnEmpty: null,
    } as never
    expect(await outcomeOf(basin.createStream('x', nulls, { requestToken: 't' }))).toBe('ok')
    expect((await basin.createStream('x', {}, { requestToken: 't' })).result).toBe('noop')
  })
})

describe('the stream cache with many streams', () => {
  for (const shared of [true, false]) {
    it(`holds one object per log when many streams are opened at once (shared: ${shared})`, async () => {
      const storage = wrapped(testStorage(), { shared }, () => ({}))
      const clock = testClock({ now: 1_000_000 })
      const hw = await open({ storage, clock, limits: { cachedStreams: 1 } })
      const names = ['a', 'b', 'c', 'd']
      const basin = hw.basin('basin')
      for (const name of names)
        await basin.ensureStream(name).catch(async () => {
          await hw.ensureBasin('basin')
          await basin.ensureStream(name)
        })
      const sessions = await Promise.all(names.map((name) => basin.stream(name).appendSession()))
      const seen: string[] = []
      const follower = basin
        .stream('a')
        .follow({ seqNum: 0 })
        .records$.subscribe((record) => seen.push(record.body))
      await clock.settle()
      const ticket = await sessions[0]!.submit('hello')
      await ticket.ack()
      await clock.settle()
      const { seqNum } = await basin.stream('a').checkTail()
      expect({ seen, seqNum }).toEqual({ seen: ['hello'], seqNum: 1 })
      follower.unsubscribe()
      await hw.close()
      expect(clock.pending).toBe(0)
    })
  }
})
