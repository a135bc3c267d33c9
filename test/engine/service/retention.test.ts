import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RetentionPolicy, Stream } from '../../../src/index.ts'
import { open } from '../../../src/index.ts'
import type { AppendRequest } from '../../../src/storage/contract.ts'
import {
  bodies,
  letPass,
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  STORAGE_KIND,
  testClock,
  testStorage,
  wrapped,
} from '../../support/index.ts'
import { shareOfRuns } from '../../support/property-runs.ts'

const SHORT: RetentionPolicy = { ageSeconds: 600 }
const YEAR_MS = 366 * 86_400_000
const LONG: RetentionPolicy = { ageSeconds: 7_200 }

/** The bodies that a new read returns. */
async function stored(stream: Stream): Promise<string[]> {
  const reading = stream.readBatch({ seqNum: 0 })
  return (await outcomeOf(reading)) === 'range_not_satisfiable' ? [] : bodies(await reading)
}

let engine: Awaited<ReturnType<typeof openEngine>>

onEveryKindOfStorage(() =>
  describe('what is created in process', () => {
    it('keeps its records forever', async () => {
      const storage = testStorage()
      engine = await openEngine({ storage })
      const { hw, clock } = engine
      await hw.createBasin('created')
      await hw.ensureBasin('ensured')
      await hw.basin('created').createStream('s')
      await hw.basin('ensured').ensureStream('s')
      for (const basin of ['created', 'ensured', 'appended']) {
        const stream = hw.basin(basin).stream('s')
        await stream.append('a')
        await hw.basin(basin).stream('other').append('b')
        expect((await hw.basin(basin).stream('other').config()).retentionPolicy).toBe('infinite')
        const { defaultStreamConfig } = await hw.basin(basin).config()
        expect(defaultStreamConfig.retentionPolicy).toBe('infinite')
      }
      // A year of background work would take too long.
      await hw.close()
      engine = await openEngine({ storage, clock: testClock({ now: clock.now() + YEAR_MS }) })
      await engine.clock.advance('2m')
      for (const basin of ['created', 'ensured', 'appended']) {
        expect(bodies(await engine.hw.basin(basin).stream('s').readBatch({ seqNum: 0 }))).toEqual(['a'])
      }
    })

    it('keeps the retention of its configuration, or else of its basin', async () => {
      engine = await openEngine({ storage: testStorage() })
      const { hw } = engine
      const basin = hw.basin('b')
      await hw.createBasin('b', { defaultStreamConfig: { retentionPolicy: LONG } })
      await basin.createStream('own', { retentionPolicy: SHORT })
      await basin.createStream('default')
      await basin.stream('appended').append('a')
      const policies = ['own', 'default', 'appended'].map(
        async (name) => (await basin.stream(name).config()).retentionPolicy,
      )
      expect(await Promise.all(policies)).toEqual([SHORT, LONG, LONG])
      // A holder of a token in process is no request.
      const token = await hw.issueAccessToken({
        id: 'all',
        scope: {
          basins: { prefix: '' },
          streams: { prefix: '' },
          opGroups: { stream: { read: true, write: true } },
        },
      })
      await hw.createBasin('open', { createStreamOnAppend: true })
      await hw.as(token).basin('open').stream('s').append('a')
      expect((await hw.basin('open').stream('s').config()).retentionPolicy).toBe('infinite')
    })
  }),
)

onEveryKindOfStorage(() =>
  describe('a longer retention', () => {
    it.each<[string, RetentionPolicy]>([
      ['another age', LONG],
      ['infinity', 'infinite'],
    ])('keeps records that are stored: %s', async (_, longer) => {
      engine = await openEngine({ storage: testStorage() })
      const { stream, hw, clock } = engine
      const basin = hw.basin('basin')
      await basin.ensureStream('stream', { retentionPolicy: SHORT })
      await stream.append('a')
      await clock.advance('8m')
      await stream.append('b')
      await basin.stream('stream').reconfigure({ retentionPolicy: longer })
      await stream.append('c')
      await letPass(clock, '110m')
      expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a', 'b', 'c'])
      await letPass(clock, '20m')
      const expected = longer === 'infinite' ? ['a', 'b', 'c'] : []
      expect(await stored(stream)).toEqual(expected)
    })

    it('keeps records when the stream is ensured with it', async () => {
      engine = await openEngine({ storage: testStorage() })
      const { stream, hw, clock } = engine
      await hw.basin('basin').ensureStream('stream', { retentionPolicy: SHORT })
      await stream.append('a')
      expect((await hw.basin('basin').ensureStream('stream')).result).toBe('updated')
      await letPass(clock, '30m')
      expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a'])
    })

    it('keeps an append that was in flight when it came into force', async () => {
      let waiting: (() => void)[] | undefined
      const storage = wrapped(testStorage(), {}, (session) => ({
        append: async (request: AppendRequest) => {
          if (waiting !== undefined) await new Promise<void>((go) => waiting?.push(go))
          return session.append(request)
        },
      }))
      engine = await openEngine({ storage })
      const { stream, hw, clock } = engine
      const basin = hw.basin('basin')
      await basin.ensureStream('stream', { retentionPolicy: SHORT })
      await stream.append('before')
      waiting = []
      const appending = stream.append('in flight')
      await clock.settle()
      await basin.stream('stream').reconfigure({ retentionPolicy: 'infinite' })
      const held = waiting
      waiting = undefined
      for (const go of held) go()
      await appending
      await letPass(clock, '30m')
      expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['before', 'in flight'])
    })
  }),
)

describe('a longer retention on a shared storage', () => {
  it('protects the records of other engines, and no change of theirs is lost', async () => {
    const storage = testStorage()
    engine = await openEngine({ storage })
    const { hw, stream, clock } = engine
    const other = await open({ storage, clock })
    const basin = hw.basin('basin')
    await basin.ensureStream('stream', { retentionPolicy: SHORT })
    const otherStream = other.basin('basin').stream('stream')
    await otherStream.append('a')
    await Promise.all([
      stream.append('b'),
      basin.stream('stream').reconfigure({ retentionPolicy: 'infinite' }),
      other
        .basin('basin')
        .stream('stream')
        .reconfigure({ timestamping: { mode: 'arrival' } }),
      otherStream.append('c'),
      other.basin('basin').stream('stream').reconfigure({ storageClass: 'standard' }),
    ])
    expect(await basin.stream('stream').config()).toMatchObject({
      retentionPolicy: 'infinite',
      storageClass: 'standard',
      timestamping: { mode: 'arrival' },
    })
    await letPass(clock, '30m')
    for (const reader of [stream, otherStream]) {
      expect(bodies(await reader.readBatch({ seqNum: 0 })).sort()).toEqual(['a', 'b', 'c'])
    }
    await other.close()
  })

  it('keeps every record for as long as a policy that found it, whatever two engines do', {
    tags: ['slow'],
  }, async () => {
    const policy = fc.constantFrom<RetentionPolicy>(
      { ageSeconds: 5 },
      { ageSeconds: 60 },
      { ageSeconds: 600 },
      'infinite',
    )
    const step = fc.record({
      by: fc.nat(1),
      waitSeconds: fc.constantFrom(0, 4, 55, 120, 660),
      policy: fc.option(policy),
    })
    const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      const storage = testStorage()
      const one = await openEngine({ storage })
      const { clock } = one
      const engines = [one.hw, await open({ storage, clock })]
      let current: RetentionPolicy = 'infinite'
      const kept = new Map<string, number>()
      const until = (policy: RetentionPolicy) =>
        policy === 'infinite' ? Number.POSITIVE_INFINITY : clock.now() + policy.ageSeconds * 1000
      for (const [index, { by, waitSeconds, policy }] of steps.entries()) {
        const basin = engines[by]!.basin('basin')
        if (policy === null) {
          await basin.stream('stream').append(String(index))
          kept.set(String(index), until(current))
        } else {
          const [before, after] = [until(current), until(policy)]
          await basin.stream('stream').reconfigure({ retentionPolicy: policy })
          for (const [body, end] of kept) {
            if (after > before && end > clock.now() + 2_000) kept.set(body, Math.max(end, after))
          }
          current = policy
        }
        await clock.advance(waitSeconds * 1_000)
        const expected = [...kept].filter(([, end]) => end > clock.now()).map(([body]) => body)
        for (const hw of engines) {
          expect(await stored(hw.basin('basin').stream('stream'))).toEqual(expect.arrayContaining(expected))
        }
      }
      for (const hw of engines) await hw.close()
    })
    // With a database, each minute of background work makes real calls.
    await fc.assert(property, STORAGE_KIND === 'postgres' ? shareOfRuns(1 / 5) : {})
  })
})
