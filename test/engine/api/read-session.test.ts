import { afterEach, describe, expect, it } from 'vitest'
import { HeadwaterError, type ReadBatch, type ReadQuery, type SessionEvent } from '../../../src/index.ts'
import {
  bodies,
  gated,
  onEveryKindOfStorage,
  openEngine,
  type TestEngine,
  testStorage,
} from '../../support/index.ts'

let engine: TestEngine
afterEach(() => engine.hw.close())

/** Collects a session's events until it ends; `state` tells how it stands. */
function collect(iterable: AsyncIterable<SessionEvent<'string'>>) {
  const state = { events: [] as SessionEvent<'string'>[], end: 'open' as unknown }
  const run = async () => {
    for await (const event of iterable) state.events.push(event)
  }
  run().then(
    () => {
      state.end = 'done'
    },
    (error: unknown) => {
      state.end = HeadwaterError.is(error) ? error.code : error
    },
  )
  return {
    state,
    summary: () =>
      state.events.map((event) =>
        event.kind === 'heartbeat'
          ? `beat@${event.tail.seqNum}`
          : `${bodies(event.batch)}|${event.batch.tail?.seqNum ?? '-'}`,
      ),
  }
}

async function unary(query: ReadQuery): Promise<string[] | number> {
  try {
    return bodies(await engine.stream.read(query))
  } catch (error) {
    return (error as HeadwaterError).status
  }
}

onEveryKindOfStorage(() =>
  describe('unary reads', () => {
    it.each<[ReadQuery, string[] | number]>([
      [{ seqNum: 0 }, ['a', 'b', 'c']],
      [{ seqNum: 2 }, ['c']],
      [{ seqNum: 3 }, 416],
      [{ seqNum: 9, clamp: true }, 416],
      [{}, 416],
      [{ tailOffset: 2 }, ['b', 'c']],
      [{ tailOffset: 99 }, ['a', 'b', 'c']],
      [{ timestamp: 0 }, ['a', 'b', 'c']],
      [{ timestamp: 20 }, ['b', 'c']],
      [{ timestamp: 21 }, ['c']],
      [{ timestamp: 31 }, 416],
      [{ seqNum: 0, count: 2 }, ['a', 'b']],
      [{ seqNum: 0, count: 0 }, []],
      [{ seqNum: 0, bytes: 17 }, ['a']],
      [{ seqNum: 0, bytes: 18 }, ['a', 'b']],
      [{ seqNum: 0, bytes: 8 }, []],
      [{ seqNum: 0, until: 30 }, ['a', 'b']],
      [{ seqNum: 0, until: 10 }, []],
      [{ seqNum: 0, timestamp: 0 }, 422],
      [{ timestamp: 30, until: 30 }, 422],
      [{ seqNum: -1 }, 422],
    ])('%j gives %j', async (query, expected) => {
      engine = await openEngine()
      await engine.stream.append([
        { body: 'a', timestamp: 10 },
        { body: 'b', timestamp: 20 },
      ])
      await engine.stream.append({ body: 'c', timestamp: 30 })
      expect(await unary(query)).toEqual(expected)
      expect(engine.hw.stats().openReads).toBe(0)
    })

    it('returns at most 1,000 records and 1 MiB', async () => {
      engine = await openEngine()
      const { stream } = engine
      await stream.append(Array.from({ length: 700 }, () => 'x'))
      await stream.append(Array.from({ length: 700 }, () => 'y'))
      expect((await stream.read({ seqNum: 0 }, { as: 'bytes' })).records).toHaveLength(1000)
      const half = new Uint8Array(600_000)
      await stream.append(half)
      await stream.append(half)
      expect((await stream.read({ seqNum: 1400 }, { as: 'bytes' })).records).toHaveLength(1)
      expect((await stream.read({ seqNum: 1, count: 5000 }, { as: 'bytes' })).records).toHaveLength(1000)
    })

    it('waits for the first append up to the requested time', async () => {
      engine = await openEngine()
      const { stream, clock } = engine
      const first = stream.read({ seqNum: 0, waitSeconds: 10 })
      await clock.advance('9s')
      await stream.append(['a', 'b'])
      const batch = await first
      expect([bodies(batch), batch.tail]).toEqual([['a', 'b'], { seqNum: 2, timestamp: 1_009_000 }])
      let none: ReadBatch<'string'> | undefined
      const second = stream.read({ waitSeconds: 600 }).then((empty) => {
        none = empty
      })
      await clock.advance('59s')
      expect(none).toBeUndefined()
      await clock.advance('1s')
      await second
      expect([none?.records, none?.tail]).toEqual([[], undefined])
      expect(clock.pending).toBe(baseline)
    })

    it('does not wait when there are records', async () => {
      engine = await openEngine()
      await engine.stream.append('a')
      const batch = await engine.stream.read({ seqNum: 0, waitSeconds: 10 })
      expect([bodies(batch), batch.tail?.seqNum]).toEqual([['a'], 1])
    })

    it('a long poll ends when its signal aborts, and leaves nothing behind', async () => {
      engine = await openEngine()
      const controller = new AbortController()
      const poll = engine.stream.read({ waitSeconds: 60 }, { signal: controller.signal })
      await engine.clock.settle()
      expect(engine.hw.stats()).toMatchObject({ openReads: 1, waitingReads: 1 })
      controller.abort(new Error('enough'))
      await expect(poll).rejects.toThrow('enough')
      expect(engine.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
      expect(engine.clock.pending).toBe(baseline)
    })
  }),
)

/** The timers that an engine always has: one of its background work, one of the usage metrics. */
const baseline = 2

onEveryKindOfStorage(() =>
  describe('read sessions', () => {
    it('deliver history, a heartbeat, then live batches with tails', async () => {
      engine = await openEngine({ random: () => 0.5 })
      const { stream, clock } = engine
      await stream.append('a')
      await stream.append('b')
      const { state, summary } = collect(stream.readSession({ seqNum: 0 }).events())
      await clock.settle()
      await stream.append(['c', 'd'])
      await clock.advance('9999ms')
      expect(summary()).toEqual(['a,b|2', 'beat@2', 'c,d|4'])
      await clock.advance('1ms')
      await clock.advance('10s')
      expect(summary().slice(3)).toEqual(['beat@4', 'beat@4'])
      await engine.hw.close()
      await clock.settle()
      expect(state.end).toBe('unavailable')
      expect(clock.pending).toBe(0)
    })

    it('end after `wait` without a record; heartbeats do not prolong it, records do', async () => {
      engine = await openEngine({ random: () => 0 })
      const { stream, clock } = engine
      const { state } = collect(stream.readSession({ seqNum: 0, waitSeconds: 12 }).events())
      await clock.advance('11s')
      await stream.append('a')
      await clock.advance('11s')
      expect(state.end).toBe('open')
      await clock.advance('1s')
      expect(state.end).toBe('done')
      expect(clock.pending).toBe(baseline)
    })

    it.each<[ReadQuery, string[]]>([
      [{ seqNum: 0, count: 3, waitSeconds: 60 }, ['a,b|2', 'beat@2', 'c|4']],
      [{ seqNum: 0, count: 2, waitSeconds: 60 }, ['a,b|2']],
      [{ seqNum: 0, bytes: 28, waitSeconds: 60 }, ['a,b|2', 'beat@2', 'c|4']],
      [{ seqNum: 0, until: 1_000_001, waitSeconds: 60 }, ['a,b|2', 'beat@2']],
      [{ seqNum: 0, count: 3 }, ['a,b|2']],
      [{ seqNum: 0, count: 1 }, ['a|-']],
      [{ seqNum: 0, count: 0 }, []],
      [{ seqNum: 2, count: 0, waitSeconds: 60 }, ['beat@2']],
      [{ seqNum: 0, waitSeconds: 0 }, ['a,b|2']],
    ])('%j delivers %j and ends', async (query, expected) => {
      engine = await openEngine()
      const { stream, clock } = engine
      await stream.append(['a', 'b'])
      const { state, summary } = collect(stream.readSession(query).events())
      await clock.advance(1)
      await stream.append(['c', 'd'])
      await clock.settle()
      expect(summary()).toEqual(expected)
      expect(state.end).toBe('done')
      expect(engine.hw.stats().openReads).toBe(0)
    })

    it('at the tail with wait 0 reject with range_not_satisfiable, or are empty if asked for', async () => {
      engine = await openEngine()
      const query = { waitSeconds: 0 }
      const refused = collect(engine.stream.readSession(query).events())
      const empty = await engine.stream.openRead(query, { allowsEmpty: true })
      await engine.clock.settle()
      expect([refused.state.end, empty]).toEqual(['range_not_satisfiable', undefined])
    })

    it('that fall behind catch up from the storage without a gap', async () => {
      engine = await openEngine({ limits: { followerLagBatches: 3 } })
      const { stream, clock } = engine
      const iterator = stream.readSession({ seqNum: 0 }).events()
      const seen: string[] = []
      const take = async () => {
        const { value, done } = await iterator.next()
        if (done) throw new Error('the session ended')
        seen.push(
          value.kind === 'heartbeat' ? 'beat' : `${bodies(value.batch)}|${value.batch.tail?.seqNum ?? '-'}`,
        )
      }
      await take()
      for (let i = 0; i < 10; i++) await stream.append(`${i}`)
      await take()
      await take()
      await stream.append('x')
      await take()
      await clock.settle()
      expect(seen).toEqual(['beat', '0,1,2,3,4,5,6,7,8,9|10', 'beat', 'x|11'])
      await iterator.return?.()
    })

    it('never read ahead of their consumer', async () => {
      const storage = gated(testStorage())
      engine = await openEngine({ storage })
      for (let i = 0; i < 5; i++) await engine.stream.append(new Uint8Array(900_000))
      const iterator = engine.stream.readSession({ seqNum: 0 }).batches()
      await iterator.next()
      const before = storage.reads
      await engine.clock.settle()
      expect(storage.reads).toBe(before)
      await iterator.return(undefined)
    })

    it('can be cancelled while they wait', async () => {
      engine = await openEngine()
      const iterator = engine.stream.readSession().batches()
      const pending = iterator.next()
      await engine.clock.settle()
      expect(engine.hw.stats().waitingReads).toBe(1)
      await iterator.return(undefined)
      expect((await pending).done).toBe(true)
      expect(engine.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
    })

    it('end with an error when their stream is deleted or created again', async () => {
      engine = await openEngine()
      const { stream, hw, clock } = engine
      await stream.append('old')
      const { state, summary } = collect(stream.readSession({ seqNum: 0 }).events())
      await clock.settle()
      await hw.basin('basin').deleteStream('stream')
      await hw.basin('basin').createStream('stream')
      await stream.append('new')
      await clock.settle()
      expect([state.end, summary()]).toEqual(['unavailable', ['old|1', 'beat@1']])
    })

    it('stop reading at once when an observable is unsubscribed', async () => {
      engine = await openEngine()
      const { stream, clock, hw } = engine
      await stream.append(['a', 'b', 'c'])
      const seen: string[] = []
      const subscription = stream.readSession({ seqNum: 0 }).records$.subscribe(({ body }) => {
        seen.push(body)
        if (body === 'b') subscription.unsubscribe()
      })
      await clock.settle()
      expect(seen).toEqual(['a', 'b'])
      expect(hw.stats().openReads).toBe(0)
      const failed: unknown[] = []
      stream
        .readSession({ seqNum: 9 }, { as: 'bytes' })
        .records$.subscribe({ error: (error) => failed.push(error.status) })
      let completed = false
      stream
        .readSession({ seqNum: 0, count: 3 }, { as: 'bytes' })
        .records$.subscribe({ complete: () => (completed = true) })
      await clock.settle()
      expect([failed, completed]).toEqual([[416], true])
    })

    it('emit appends that became durable together in one turn, until unsubscribed', async () => {
      engine = await openEngine()
      const { stream, clock, hw } = engine
      await stream.append('history')
      const seen: string[] = []
      const { records$ } = stream.readSession()
      const following = records$.subscribe(({ body }) => {
        seen.push(body)
        if (body === 'a') queueMicrotask(() => seen.push('later'))
      })
      const left: string[] = []
      const subscription = records$.subscribe(({ body }) => {
        left.push(body)
        if (body === 'b') subscription.unsubscribe()
      })
      await clock.settle()
      await Promise.all(['a', 'b', 'c'].map((body) => stream.append(body)))
      await clock.settle()
      expect(seen).toEqual(['a', 'b', 'c', 'later'])
      expect(left).toEqual(['a', 'b'])
      expect(hw.stats().openReads).toBe(1)
      following.unsubscribe()
    })

    it('leave no timer and no waiter after 1,000 were abandoned in every way', async () => {
      engine = await openEngine()
      const { stream, clock, hw } = engine
      const controller = new AbortController()
      const ends: (() => unknown)[] = []
      for (let i = 0; i < 250; i++) {
        const iterator = stream.readSession({ waitSeconds: 50 }).events()
        iterator.next()
        ends.push(() => iterator.return?.())
        const subscription = stream.readSession({}, { as: 'bytes' }).records$.subscribe()
        ends.push(() => subscription.unsubscribe())
        collect(stream.readSession({}, { signal: controller.signal }).events())
        stream.read({ waitSeconds: 60 }, { signal: controller.signal }).catch(() => {})
      }
      await clock.settle()
      expect(hw.stats().openReads).toBe(1000)
      expect(hw.stats().waitingReads).toBe(750)
      expect(clock.pending).toBeGreaterThan(250)
      controller.abort()
      for (const end of ends) end()
      await clock.settle()
      expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
      expect(clock.pending).toBe(baseline)
    })
  }),
)

describe('a read session in a format', () => {
  it('iterates records with strings by default', async () => {
    engine = await openEngine()
    await engine.stream.append([{ body: 'a', headers: [['k', 'v']] }, 'b'])
    const found: unknown[] = []
    for await (const { seqNum, headers, body } of engine.stream.readSession({ seqNum: 0, count: 2 })) {
      found.push([seqNum, headers, body])
    }
    expect(found).toEqual([
      [0, [['k', 'v']], 'a'],
      [1, [], 'b'],
    ])
  })

  it('iterates records with bytes on request, also those that are no UTF-8', async () => {
    engine = await openEngine()
    const body = new Uint8Array([0xff, 0])
    await engine.stream.append(body)
    const [record] = (await engine.stream.read({ seqNum: 0 }, { as: 'bytes' })).records
    expect(record!.body).toEqual(body)
    for await (const { body: read } of engine.stream.readSession({ seqNum: 0, count: 1 }, { as: 'bytes' })) {
      expect(read).toEqual(body)
    }
    expect((await engine.stream.read({ seqNum: 0 })).records[0]!.body).toBe('\ufffd\0')
  })

  it('delivers records in order to calls of next that are not awaited, and nothing after return', async () => {
    engine = await openEngine()
    await engine.stream.append(['a', 'b'])
    await engine.stream.append('c')
    const iterator = engine.stream.readSession({ seqNum: 0 })[Symbol.asyncIterator]()
    const results = await Promise.all([iterator.next(), iterator.next(), iterator.next()])
    expect(results.map(({ value }) => value?.body)).toEqual(['a', 'b', 'c'])
    const waiting = iterator.next()
    await iterator.return()
    expect([await waiting, await iterator.next()]).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ])
    expect(engine.hw.stats().openReads).toBe(0)
  })

  it('throws the reason of its signal before records that have arrived', async () => {
    engine = await openEngine()
    await engine.stream.append(['a', 'b'])
    const controller = new AbortController()
    const iterator = engine.stream
      .readSession({ seqNum: 0 }, { signal: controller.signal })
      [Symbol.asyncIterator]()
    expect((await iterator.next()).value?.body).toBe('a')
    controller.abort(new Error('enough'))
    await expect(iterator.next()).rejects.toThrow('enough')
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })
})

describe('reads that do not follow', () => {
  it('create nothing, where a session creates the stream', async () => {
    engine = await openEngine()
    const stream = engine.hw.basin('missing').stream('stream')
    await expect(stream.checkTail()).rejects.toMatchObject({ code: 'basin_not_found' })
    await expect(stream.read()).rejects.toMatchObject({ code: 'basin_not_found' })
    const missing = engine.hw.basin('basin').stream('missing')
    await expect(missing.checkTail()).rejects.toMatchObject({ code: 'stream_not_found' })
    await expect(missing.read()).rejects.toMatchObject({ code: 'stream_not_found' })
    const iterator = missing.readSession().batches()
    const first = iterator.next()
    await engine.clock.settle()
    await missing.append('a')
    expect(bodies((await first).value!)).toEqual(['a'])
    await iterator.return()
  })
})
