import { afterEach, describe, expect, it } from 'vitest'
import { HeadwaterError } from '../../../src/index.ts'
import { bodies, onEveryKindOfStorage, openEngine, readAll, type TestEngine } from '../../support/index.ts'

let engine: TestEngine
afterEach(() => engine.hw.close())

onEveryKindOfStorage(() =>
  describe('append', () => {
    it('acknowledges positions and stores the records', async () => {
      engine = await openEngine()
      const { stream } = engine
      const ack = await stream.append(['a', 'b'])
      expect(ack).toEqual({
        start: { seqNum: 0, timestamp: 1_000_000 },
        end: { seqNum: 2, timestamp: 1_000_000 },
        tail: { seqNum: 2, timestamp: 1_000_000 },
      })
      expect(await stream.checkTail()).toEqual(ack.tail)
      expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a', 'b'])
    })

    it('keeps the order of calls that are not awaited, also while they create the stream', async () => {
      engine = await openEngine()
      const fresh = engine.hw.basin('other').stream('new')
      const acks = await Promise.all(Array.from({ length: 50 }, (_, i) => fresh.append(`${i}`)))
      expect(acks.map(({ start }) => start.seqNum)).toEqual(Array.from({ length: 50 }, (_, i) => i))
      expect(await readAll(fresh)).toEqual(Array.from({ length: 50 }, (_, i) => `${i}`))
    })

    it('rejects conditions that do not hold after the appends in flight', async () => {
      engine = await openEngine()
      const { stream } = engine
      const [first, second, third] = await Promise.allSettled([
        stream.append('a', { matchSeqNum: 0 }),
        stream.append('b', { matchSeqNum: 0 }),
        stream.append('c', { matchSeqNum: 1 }),
      ])
      expect([first.status, second.status, third.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      const error = (second as PromiseRejectedResult).reason
      expect(HeadwaterError.is(error) && [error.code, error.seqNum]).toEqual(['seq_num_mismatch', 1])
      expect(await readAll(stream)).toEqual(['a', 'c'])
    })

    it('rejects another fencing token after a fence', async () => {
      engine = await openEngine()
      const { stream } = engine
      await stream.fence('mine')
      await expect(stream.append('x', { fencingToken: 'yours' })).rejects.toMatchObject({
        code: 'fencing_token_mismatch',
        fencingToken: 'mine',
      })
      await stream.append('y', { fencingToken: 'mine' })
      await stream.append('z')
      expect((await stream.checkTail()).seqNum).toBe(3)
    })

    it('delivers history, then live records', async () => {
      engine = await openEngine()
      const { stream, hw } = engine
      await stream.append(['a', 'b'])
      const received: string[] = []
      const subscription = stream.follow({ seqNum: 0 }).records$.subscribe(({ body }) => received.push(body))
      await engine.clock.settle()
      await stream.append('c')
      await engine.clock.settle()
      expect(received).toEqual(['a', 'b', 'c'])
      expect(hw.stats()).toMatchObject({ openReads: 1, waitingReads: 1 })
      subscription.unsubscribe()
      await engine.clock.settle()
      expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0, pendingAppends: 0 })
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('invalid input from untyped code', () => {
    it.each([
      ['no record', undefined],
      ['a number', 5],
      ['an array in a batch', [['a']]],
      ['a body that is no bytes', { body: 5 }],
      ['headers that are no array', { headers: 'x' }],
      ['a header that is no pair', { headers: [['a']] }],
      ['a header value that is no bytes', { headers: [['a', 1]] }],
      ['a timestamp that is no integer', { timestamp: 1.5 }],
      ['a negative timestamp', { timestamp: -1 }],
    ])('%s is rejected and nothing is written', async (_, record) => {
      engine = await openEngine()
      await expect(engine.stream.append(record as never)).rejects.toMatchObject({
        code: 'invalid',
        status: 422,
      })
      expect((await engine.stream.checkTail()).seqNum).toBe(0)
    })

    it.each([-1, 1.5, Number.NaN])('trim(%d) is rejected', async (seqNum) => {
      engine = await openEngine()
      await expect(engine.stream.trim(seqNum)).rejects.toMatchObject({ code: 'invalid', field: 'seqNum' })
    })
  }),
)
