import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  bodies,
  deferred,
  gated,
  openEngine,
  outcomeOf,
  testClock,
  testStorage,
  wrapped,
} from '../../support/index.ts'

describe('the table of streams', () => {
  for (const shared of [false, true]) {
    it(`keeps a stream whose append waits for room (shared: ${shared})`, async () => {
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

  it('delivers appends of other engines to followers, whenever they are made', async () => {
    const missed: number[] = []
    for (let offset = 0; offset < 25; offset++) {
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
    const following = stream.follow().batches$.subscribe((batch) => seen.push(...bodies(batch)))
    await clock.settle()
    failing = true
    await writer.basin('basin').stream('stream').append('1')
    await clock.settle()
    failing = false
    await clock.advance('10m')
    expect(seen).toEqual(['1'])
    following.unsubscribe()
    await writer.close()
  })

  it('keeps the trim point with which an evicted fork began', async () => {
    const { hw, stream } = await openEngine({ limits: { cachedStreams: 40 } })
    const basin = hw.basin('basin')
    await stream.append(['a', 'b'])
    await stream.trim(2)
    await basin.createStream('fork', {}, { fork: { stream: 'stream' } })
    for (let round = 0; round < 3; round++) {
      await basin.stream('fork').append('x')
      for (let i = 0; i < 30; i++) await basin.stream(`other/${i}`).append('x')
    }
    await basin.stream('fork').append('x')
    const earlier = basin.createStream('again', {}, { fork: { stream: 'fork', seqNum: 1 } })
    await expect(earlier).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 2 })
  })
})

describe('looking up a stream', () => {
  it('fails each call for its own reason, however many calls for the name wait', async () => {
    const hw = await open({ storage: testStorage(), clock: testClock(), autoCreate: false })
    await hw.ensureBasin('basin')
    // What one look-up fails with is not what one of another configuration would.
    const append = (ageSeconds: number) =>
      hw
        .basin('basin')
        .stream('s', { config: { retentionPolicy: { ageSeconds } } })
        .append('a')
    const outcomes = Array.from({ length: 30 }, (_, i) => outcomeOf(append(i + 1)))
    expect(await Promise.all(outcomes)).toEqual(outcomes.map(() => 'stream_not_found'))
    await hw.close()
  })

  it.each(['append', 'read'] as const)(
    'finds a stream that was created after a shared lookup began: %s',
    async (purpose) => {
      // The first lookup of the stream resolves when the test releases it.
      const gate = deferred()
      let isFirst = true
      const storage = wrapped(testStorage(), {}, (session) => ({
        get: async (collection, key) => {
          const document = await session.get(collection, key)
          if (collection === 'streams' && isFirst) {
            isFirst = false
            await gate.promise
          }
          return document
        },
      }))
      const clock = testClock()
      const hw = await open({ storage, clock, autoCreate: false })
      await hw.ensureBasin('basin')
      const basin = hw.basin('basin')
      const stream = basin.stream('stream')
      const use = () => outcomeOf(purpose === 'append' ? stream.append('a') : stream.openCursor({}, {}))
      const before = use()
      await clock.settle()
      await basin.createStream('stream')
      const after = [use(), use()]
      gate.resolve()
      expect([await before, ...(await Promise.all(after))]).toEqual(['stream_not_found', 'ok', 'ok'])
      await hw.close()
    },
  )
})
