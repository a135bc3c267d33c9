import { describe, expect, it } from 'vitest'
import { HeadwaterError } from '../../../src/index.ts'
import { bodies, onEveryKindOfStorage, openEngine, readAll } from '../../support/index.ts'

/** What the clock of the tests shows. */
const NOW = 1_000_000

onEveryKindOfStorage(() =>
  describe('append', () => {
    it('acknowledges positions and stores the records', async () => {
      const engine = await openEngine()
      const { stream } = engine
      const ack = await stream.append(['a', 'b'])
      expect(ack).toEqual({
        start: { seqNum: 0, timestamp: NOW },
        end: { seqNum: 2, timestamp: NOW },
        tail: { seqNum: 2, timestamp: NOW },
      })
      expect(await stream.checkTail()).toEqual(ack.tail)
      expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a', 'b'])
    })

    it('keeps the order of calls that are not awaited, also while they create the stream', async () => {
      const engine = await openEngine()
      const fresh = engine.hw.basin('other').stream('new')
      const acks = await Promise.all(Array.from({ length: 50 }, (_, i) => fresh.append(`${i}`)))
      expect(acks.map(({ start }) => start.seqNum)).toEqual(Array.from({ length: 50 }, (_, i) => i))
      expect(await readAll(fresh)).toEqual(Array.from({ length: 50 }, (_, i) => `${i}`))
    })

    it('comes after creations that were called before and are not awaited', async () => {
      const engine = await openEngine()
      const { hw } = engine
      const config = { retentionPolicy: { ageSeconds: 99 } } as const
      const stream = hw.basin('basin').stream('new')
      const inNewBasin = hw.basin('new').stream('s')
      const results = await Promise.allSettled([
        hw.basin('basin').createStream('new', config),
        stream.append('a'),
        hw.createBasin('new', { defaultStreamConfig: config }),
        inNewBasin.append('b'),
        hw.basin('basin').createStream('failing', { retentionPolicy: { ageSeconds: -1 } }),
        hw.basin('basin').stream('failing').append('c'),
      ])
      expect(results.map(({ status }) => status === 'fulfilled')).toEqual([
        true,
        true,
        true,
        true,
        false,
        true,
      ])
      for (const each of [stream, inNewBasin]) expect(await each.config()).toMatchObject(config)
    })

    it('rejects conditions that do not hold after the appends in flight', async () => {
      const engine = await openEngine()
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

    it('delivers history, then live records', async () => {
      const engine = await openEngine()
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

describe('the conditions of appends', () => {
  it('are reported with what they should have been', async () => {
    const engine = await openEngine()
    const { stream } = engine
    await stream.fence('mine')
    const yours = stream.append('x', { fencingToken: 'yours' })
    await expect(yours).rejects.toMatchObject({ status: 412, fencingToken: 'mine', mayHaveEffects: false })
    const early = stream.append('x', { matchSeqNum: 0 })
    await expect(early).rejects.toMatchObject({ status: 412, seqNum: 1, mayHaveEffects: false })
  })
})
