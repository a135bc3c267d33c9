import { describe, expect, it } from 'vitest'
import { HeadwaterError, type ReadQuery, type ReadSessionEvent } from '../../../src/index.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import {
  bodies,
  gated,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  testStorage,
} from '../../support/index.ts'

/** Collects a session's events until it ends; `state` is its current state. */
function collect(iterable: AsyncIterable<ReadSessionEvent>) {
  const state = { events: [] as ReadSessionEvent[], end: 'open' as unknown }
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

/** The timers that an engine always has: one of its background work, one of the usage metrics. */
const baseline = 2

onEveryKindOfStorage(() =>
  describe('read sessions', () => {
    it('leave no timer, in whichever moment they are aborted', async () => {
      const { stream, clock } = await openEngine()
      await stream.append('a')
      const timers = clock.pending
      for (let moments = 0; moments < 20; moments++) {
        const controller = new AbortController()
        const read = stream.read({ tailOffset: 0, waitMs: 60_000 }, { signal: controller.signal })
        const first = outcomeOf(read[Symbol.asyncIterator]().next())
        for (let moment = 0; moment < moments; moment++) await null
        controller.abort()
        await first
        await clock.settle()
        expect(clock.pending).toBe(timers)
      }
    })

    it('deliver history, a heartbeat, then live batches with tails', async () => {
      const engine = await openEngine({ random: () => 0.5 })
      const { stream, clock } = engine
      await stream.append('a')
      await stream.append('b')
      const { state, summary } = collect(stream.follow({ seqNum: 0 }).events())
      await clock.settle()
      await stream.append(['c', 'd'])
      await clock.advance('9999ms')
      expect(summary()).toEqual(['a,b|2', 'beat@2', 'c,d|4'])
      await clock.advance('1ms')
      await clock.advance('10s')
      expect(summary().slice(3)).toEqual(['beat@4', 'beat@4'])
      await engine.hw.close()
      await clock.settle()
      expect(state.end).toBe('closed')
      expect(clock.pending).toBe(0)
    })

    it('end after `wait` without a record; heartbeats do not prolong it, records do', async () => {
      const engine = await openEngine({ random: () => 0 })
      const { stream, clock } = engine
      const { state } = collect(stream.follow({ seqNum: 0, waitMs: 12_000 }).events())
      await clock.advance('11s')
      await stream.append('a')
      await clock.advance('11s')
      expect(state.end).toBe('open')
      await clock.advance('1s')
      expect(state.end).toBe('done')
      expect(clock.pending).toBe(baseline)
    })

    it.each<[ReadQuery, string[]]>([
      [{ seqNum: 0, count: 3, waitMs: 60_000 }, ['a,b|2', 'beat@2', 'c|4']],
      [{ seqNum: 0, count: 2, waitMs: 60_000 }, ['a,b|2']],
      [{ seqNum: 0, bytes: 28, waitMs: 60_000 }, ['a,b|2', 'beat@2', 'c|4']],
      [{ seqNum: 0, until: 1_000_001, waitMs: 60_000 }, ['a,b|2', 'beat@2']],
      [{ seqNum: 0, count: 3 }, ['a,b|2', 'beat@2', 'c|4']],
      [{ seqNum: 0, count: 3, waitMs: 0 }, ['a,b|2']],
      [{ seqNum: 0, count: 1 }, ['a|-']],
      [{ seqNum: 0, count: 0 }, []],
      [{ seqNum: 2, count: 0, waitMs: 60_000 }, ['beat@2']],
      [{ seqNum: 0, waitMs: 0 }, ['a,b|2']],
    ])('%j delivers %j and ends', async (query, expected) => {
      const engine = await openEngine()
      const { stream, clock } = engine
      await stream.append(['a', 'b'])
      const { state, summary } = collect(stream.follow(query).events())
      await clock.advance(1)
      await stream.append(['c', 'd'])
      await clock.settle()
      expect(summary()).toEqual(expected)
      expect(state.end).toBe('done')
      expect(engine.hw.stats().openReads).toBe(0)
    })

    it('are empty at the tail with wait 0, also over the wire protocol with `allowsEmpty`', async () => {
      const engine = await openEngine()
      const query = { waitMs: 0 }
      const local = collect(engine.stream.follow(query).events())
      const empty = await engine.stream.openCursor(query, { allowsEmpty: 'session' })
      await engine.clock.settle()
      const rejected = outcomeOf(engine.stream.openCursor(query, {}))
      expect([local.state.end, empty, await rejected]).toEqual(['done', undefined, 'range_not_satisfiable'])
    })

    it('that fall behind catch up from the storage without a gap', async () => {
      const engine = await openEngine({ limits: { followerLagBatches: 3 } })
      const { stream, clock } = engine
      const iterator = stream.follow({ seqNum: 0 }).events()
      const received: string[] = []
      const next = async () => {
        const { value, done } = await iterator.next()
        if (done) throw new Error('the session ended')
        received.push(
          value.kind === 'heartbeat' ? 'beat' : `${bodies(value.batch)}|${value.batch.tail?.seqNum ?? '-'}`,
        )
      }
      await next()
      for (let i = 0; i < 10; i++) await stream.append(`${i}`)
      await next()
      await next()
      await stream.append('x')
      await next()
      await clock.settle()
      expect(received).toEqual(['beat', '0,1,2,3,4,5,6,7,8,9|10', 'beat', 'x|11'])
      await iterator.return?.()
    })

    it('never read ahead of their consumer', async () => {
      const storage = gated(testStorage())
      const engine = await openEngine({ storage })
      for (let i = 0; i < 5; i++) await engine.stream.append(new Uint8Array(900_000))
      const iterator = engine.stream.follow({ seqNum: 0 }).batches()
      await iterator.next()
      const before = storage.reads
      await engine.clock.settle()
      expect(storage.reads).toBe(before)
      await iterator.return(undefined)
    })

    it('can be cancelled while they wait', async () => {
      const engine = await openEngine()
      const iterator = engine.stream.follow().batches()
      const pending = iterator.next()
      await engine.clock.settle()
      expect(engine.hw.stats().waitingReads).toBe(1)
      await iterator.return(undefined)
      expect((await pending).done).toBe(true)
      expect(engine.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
    })

    it('end with an error when their stream is deleted or created again', async () => {
      const engine = await openEngine()
      const { stream, hw, clock } = engine
      await stream.append('old')
      const { state, summary } = collect(stream.follow({ seqNum: 0 }).events())
      await clock.settle()
      await hw.basin('basin').stream('stream').delete()
      await hw.basin('basin').createStream('stream')
      await stream.append('new')
      await clock.settle()
      expect([state.end, summary()]).toEqual(['stream_deleted', ['old|1', 'beat@1']])
    })

    it('never continue in the next stream of the name, although their consumer has paused', async () => {
      const engine = await openEngine()
      const { stream, hw } = engine
      await stream.append(['1', '2', '3'])
      const batches = stream.follow({ seqNum: 0 }).batches()
      expect(bodies((await batches.next()).value!)).toEqual(['1', '2', '3'])
      await hw.basin('basin').stream('stream').delete()
      await hw.basin('basin').createStream('stream')
      await stream.append(['new', 'new', 'new', 'new3', 'new4'])
      expect(await outcomeOf(batches.next())).toBe('stream_deleted')
    })

    it('stop reading at once when an observable is unsubscribed', async () => {
      const engine = await openEngine()
      const { stream, clock, hw } = engine
      await stream.append(['a', 'b', 'c'])
      const received: string[] = []
      const subscription = stream.follow({ seqNum: 0 }).records$.subscribe(({ body }) => {
        received.push(body)
        if (body === 'b') subscription.unsubscribe()
      })
      await clock.settle()
      expect(received).toEqual(['a', 'b'])
      expect(hw.stats().openReads).toBe(0)
      const failed: unknown[] = []
      stream
        .follow({ seqNum: 9 }, { as: 'bytes' })
        .records$.subscribe({ error: (error) => failed.push(error.status) })
      let completed = false
      stream
        .read({ seqNum: 0, count: 3 }, { as: 'bytes' })
        .records$.subscribe({ complete: () => (completed = true) })
      await clock.settle()
      expect([failed, completed]).toEqual([[416], true])
    })

    it('emit appends that became durable together in one turn, until unsubscribed', async () => {
      const engine = await openEngine()
      const { stream, clock, hw } = engine
      await stream.append('history')
      const received: string[] = []
      const { records$ } = stream.follow()
      const following = records$.subscribe(({ body }) => {
        received.push(body)
        if (body === 'a') void macrotask().then(() => received.push('later'))
      })
      const afterUnsubscribe: string[] = []
      const subscription = records$.subscribe(({ body }) => {
        afterUnsubscribe.push(body)
        if (body === 'b') subscription.unsubscribe()
      })
      await clock.settle()
      await Promise.all(['a', 'b', 'c'].map((body) => stream.append(body)))
      await clock.settle()
      expect(received).toEqual(['a', 'b', 'c', 'later'])
      expect(afterUnsubscribe).toEqual(['a', 'b'])
      expect(hw.stats().openReads).toBe(1)
      following.unsubscribe()
    })

    it('leave no timer and no waiter after reads are cancelled in four ways', async () => {
      const engine = await openEngine()
      const { stream, clock, hw } = engine
      const controller = new AbortController()
      const ends: (() => unknown)[] = []
      for (let i = 0; i < 20; i++) {
        const iterator = stream.follow({ waitMs: 50_000 }).events()
        iterator.next()
        ends.push(() => iterator.return?.())
        const subscription = stream.follow({}, { as: 'bytes' }).records$.subscribe()
        ends.push(() => subscription.unsubscribe())
        collect(stream.follow({}, { signal: controller.signal }).events())
        stream.readBatch({ tailOffset: 0, waitMs: 60_000 }, { signal: controller.signal }).catch(() => {})
      }
      await clock.settle()
      expect(hw.stats().openReads).toBe(80)
      expect(hw.stats().waitingReads).toBe(60)
      expect(clock.pending).toBeGreaterThan(20)
      controller.abort()
      for (const end of ends) end()
      await clock.settle()
      expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
      expect(clock.pending).toBe(baseline)
    })
  }),
)
