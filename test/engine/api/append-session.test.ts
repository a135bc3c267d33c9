import { describe, expect, it, onTestFinished } from 'vitest'
import { open } from '../../../src/index.ts'
import type { AppendAck } from '../../../src/model/info.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import {
  codeOf,
  deferred,
  gated,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  readAll,
  silent,
  testStorage,
} from '../../support/index.ts'

onEveryKindOfStorage(() =>
  describe('append sessions', () => {
    it('check conditions against appends in flight and acknowledge in order', async () => {
      const storage = gated(testStorage())
      const engine = await openEngine({ storage })
      const session = await engine.stream.appendSession()
      const acks: AppendAck[] = []
      session.acks$.subscribe({
        next: (ack) => acks.push(ack),
        complete: () => acks.push('complete' as never),
      })
      storage.holding = true
      for (let i = 0; i < 5; i++) await session.submit([`${i}`, 'x'], { matchSeqNum: 2 * i })
      expect(acks).toEqual([])
      storage.release()
      await session.close()
      expect(acks.map((ack) => ack.start?.seqNum)).toEqual([0, 2, 4, 6, 8, undefined])
      expect((await engine.stream.checkTail()).seqNum).toBe(10)
      expect(await outcomeOf(session.submit('late'))).toBe('closed')
    })

    it('apply back-pressure when a session or the engine has too much in flight', async () => {
      const storage = gated(testStorage())
      const engine = await openEngine({
        storage,
        limits: { sessionInFlightBytes: 2 * 1_048_576, appendInFlightBytes: 3 * 1_048_576 },
      })
      const { stream, hw, clock } = engine
      storage.holding = true
      const [first, second] = [await stream.appendSession(), await stream.appendSession()]
      const body = new Uint8Array(1_048_576 - 8)
      let submitted = 0
      const submit = (session: typeof first) => session.submit(body).then(() => submitted++)
      const all = [submit(first), submit(first), submit(first), submit(second), submit(second)]
      await clock.settle()
      expect(submitted).toBe(3)
      expect(storage.held).toBe(3)
      expect(hw.stats()).toMatchObject({
        appendBytesInFlight: 3 * 1_048_576,
        waitingAppends: 1,
        waitingAppendBytes: 2 * 1_048_576,
      })
      storage.holding = false
      storage.release()
      await Promise.all(all)
      await Promise.all([first.close(), second.close()])
      expect(hw.stats()).toMatchObject({ appendBytesInFlight: 0, waitingAppends: 0, pendingAppends: 0 })
      expect((await stream.checkTail()).seqNum).toBe(5)
    })

    it('end when their stream is deleted and created again', async () => {
      const engine = await openEngine()
      const { stream, hw } = engine
      const session = await stream.appendSession()
      await (await session.submit('old')).ack()
      await hw.basin('basin').stream('stream').delete()
      await hw.basin('basin').createStream('stream')
      expect(await outcomeOf((await session.submit('lost')).ack())).toBe('stream_deletion_pending')
      expect((await stream.checkTail()).seqNum).toBe(0)
    })

    it('append to the stream of that name if another engine has replaced the known one', async () => {
      const storage = silent(testStorage({ shared: true }), 'none')
      const engine = await openEngine({ storage })
      const { stream, clock } = engine
      await stream.append('old')
      const other = await open({ storage, clock })
      await other.basin('basin').stream('stream').delete()
      await other.basin('basin').createStream('stream')
      const session = await stream.appendSession()
      expect((await (await session.submit('new')).ack()).start.seqNum).toBe(0)
      await session.close()
      await other.close()
    })

    it('keep their order through conflicts with another engine', async () => {
      const storage = testStorage({ shared: true })
      const engine = await openEngine({ storage })
      const other = await open({ storage, clock: engine.clock })
      const sessions = [
        await engine.stream.appendSession(),
        await other.basin('basin').stream('stream').appendSession(),
      ]
      const work = sessions.map(async (session, n) => {
        for (let i = 0; i < 100; i++) await session.submit(`${n}/${i}`)
        await session.close()
      })
      await Promise.all(work)
      const all = await readAll(engine.stream)
      expect(all).toHaveLength(200)
      for (const n of [0, 1]) {
        expect(all.filter((body) => body.startsWith(`${n}/`))).toEqual(
          Array.from({ length: 100 }, (_, i) => `${n}/${i}`),
        )
      }
      await other.close()
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('appendAll', () => {
    it('yields acks as they arrive, even while the source waits', async () => {
      const engine = await openEngine()
      const gate = deferred()
      async function* source() {
        yield 'a'
        yield ['b', 'c']
        await gate.promise
        yield 'd'
      }
      const acks = engine.stream.appendAll(source())
      expect((await acks.next()).value?.end.seqNum).toBe(1)
      expect((await acks.next()).value?.end.seqNum).toBe(3)
      const last = acks.next()
      await engine.clock.settle()
      gate.resolve()
      expect((await last).value?.end.seqNum).toBe(4)
      expect((await acks.next()).done).toBe(true)
    })

    it('yields pending acks before it fails, and closes the source', async () => {
      const engine = await openEngine()
      let released = false
      function* source() {
        try {
          yield 'a'
          yield []
          yield 'never'
        } finally {
          released = true
        }
      }
      const received: number[] = []
      const run = async () => {
        for await (const ack of engine.stream.appendAll(source())) received.push(ack.end.seqNum)
      }
      expect(await outcomeOf(run())).toBe('invalid')
      expect([received, released]).toEqual([[1], true])
      expect(await readAll(engine.stream)).toEqual(['a'])
    })

    it.each<[string, expected: string]>([
      ['return() is called', 'ended'],
      ['the engine closes', 'closed'],
      ['an append fails', 'invalid'],
    ])('ends while its source is idle when %s', async (how, expected) => {
      const engine = await openEngine()
      const { hw, clock, stream } = engine
      async function* source() {
        yield 'first'
        if (how === 'an append fails') yield []
        await new Promise(() => {})
      }
      const acks = stream.appendAll(source())
      await acks.next()
      const pending = acks.next().then(() => 'ended', codeOf)
      await clock.settle()
      if (how === 'return() is called') await acks.return()
      if (how === 'the engine closes') await hw.close()
      expect(await pending).toBe(expected)
    })

    it('keeps nothing of the appends that are acknowledged', async () => {
      const { stream } = await openEngine()
      const waiting = new Map<unknown, number>()
      let most = 0
      const { then } = Promise.prototype
      const count = (promise: unknown, change: number) => {
        waiting.set(promise, (waiting.get(promise) ?? 0) + change)
        most = Math.max(most, waiting.get(promise)!)
      }
      // A promise keeps all that waits for it until it settles. `Promise.race` calls `then` of each.
      Reflect.set(Promise.prototype, 'then', function (this: Promise<unknown>, ...callbacks: unknown[]) {
        count(this, 1)
        const counted = callbacks.map(
          (callback) =>
            typeof callback === 'function' &&
            ((value: unknown) => {
              count(this, -1)
              return callback(value)
            }),
        )
        return Reflect.apply(then, this, counted)
      })
      onTestFinished(() => void Reflect.set(Promise.prototype, 'then', then))
      let stored = 0
      async function* source() {
        for (let count = 0; count < 150; count++) {
          yield 'x'
          while (stored <= count) await macrotask()
        }
      }
      for await (const { end } of stream.appendAll(source())) stored = end.seqNum
      expect(stored).toBe(150)
      expect(most).toBeLessThan(100)
    })

    it('closes the source when its consumer stops', async () => {
      const engine = await openEngine()
      let released = false
      async function* source() {
        try {
          for (let i = 0; ; i++) yield `${i}`
        } finally {
          released = true
        }
      }
      for await (const ack of engine.stream.appendAll(source())) if (ack.end.seqNum >= 10) break
      await engine.clock.settle()
      expect(released).toBe(true)
      expect(engine.hw.stats().pendingAppends).toBe(0)
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('the producer', () => {
    it('batches records for the linger time and acknowledges each one', async () => {
      const storage = gated(testStorage())
      const engine = await openEngine({ storage })
      const { stream, clock } = engine
      const producer = stream.producer({ lingerMs: 5 })
      const tickets = [await producer.submit('a'), await producer.submit('b')]
      await clock.advance(4)
      expect((await stream.checkTail()).seqNum).toBe(0)
      await clock.advance(1)
      expect((await tickets[1]!.ack()).seqNum).toBe(1)
      expect(await tickets[0]!.ack()).toEqual({ seqNum: 0, batch: (await tickets[1]!.ack()).batch })
      await producer.close()
      // Background timers: the work of every minute, and the flush of usage.
      expect(clock.pending).toBe(2)
    })

    it('sends full batches at once, by count and by size', async () => {
      const engine = await openEngine()
      const { stream } = engine
      const producer = stream.producer({ lingerMs: 1_000_000, recordsMax: 3, bytesMax: 40 })
      const batchOf: number[] = []
      const submit = async (body: string) => {
        const ticket = await producer.submit(body)
        void ticket.ack().then(({ seqNum, batch }) => (batchOf[seqNum] = batch.start.seqNum))
      }
      for (const body of ['a', 'b', 'c', 'd', 'x'.repeat(30), 'y'.repeat(60), 'z']) await submit(body)
      await producer.flush()
      await engine.clock.settle()
      expect(batchOf).toEqual([0, 0, 0, 3, 4, 5, 6])
      await producer.close()
    })

    it('advances its condition with each batch and ends at the first failure', async () => {
      const engine = await openEngine()
      const { stream } = engine
      const producer = stream.producer({ recordsMax: 2, matchSeqNum: 0 })
      const first = [await producer.submit('a'), await producer.submit('b')]
      expect((await first[1]!.ack()).seqNum).toBe(1)
      await stream.append('intruder')
      const second = [await producer.submit('c'), await producer.submit('d')]
      expect(await outcomeOf(second[0]!.ack())).toBe('seq_num_mismatch')
      expect(await outcomeOf(second[1]!.ack())).toBe('seq_num_mismatch')
      expect(await outcomeOf(producer.submit('e'))).toBe('seq_num_mismatch')
      expect(await outcomeOf(producer.close())).toBe('seq_num_mismatch')
      expect(await readAll(stream)).toEqual(['a', 'b', 'intruder'])
    })

    it('applies back-pressure to a writer that is faster than the storage', async () => {
      const storage = gated(testStorage())
      const engine = await openEngine({ storage, limits: { sessionInFlightBytes: 1_048_576 } })
      storage.holding = true
      const producer = engine.stream.producer({ recordsMax: 1 })
      let submitted = 0
      const run = async () => {
        for (let i = 0; i < 10; i++) {
          await producer.submit(new Uint8Array(500_000))
          submitted++
        }
      }
      const running = run()
      await engine.clock.settle()
      expect(submitted).toBe(2)
      storage.holding = false
      storage.release()
      await running
      await producer.close()
      expect((await engine.stream.checkTail()).seqNum).toBe(10)
    })
  }),
)
