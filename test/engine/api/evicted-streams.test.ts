import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Basin, type Engine, open, type Stream } from '../../../src/index.ts'
import { openEngine, outcomeOf, readAll, testStorage } from '../../support/index.ts'

/** How many streams stay open. */
const ROOM = [4, 1]
const OTHERS = 8
let cachedStreams = 4

let storage: ReturnType<typeof testStorage>
let clock: Awaited<ReturnType<typeof openEngine>>['clock']
let hw: Engine
let basin: Basin
beforeEach(async () => {
  storage = testStorage()
  ;({ hw, clock } = await openEngine({ storage, trimGraceMs: 0, limits: { cachedStreams } }))
  basin = hw.basin('basin')
})

/** Uses other streams, so that a stream which was used before is evicted. */
async function evict(others = OTHERS): Promise<void> {
  for (let i = 0; i < others; i++) await basin.stream(`other/${i}`).append('x')
}

const appends = (stream: Stream, options: object) => outcomeOf(stream.append('x', options))
const PRODUCER = { producer: { id: 'p', epoch: 0, seq: 0 } }

interface Case {
  readonly does: string
  /** What happens to the stream, which has the records 0, 1 and 2, before it is evicted again. */
  readonly change: (stream: Stream) => Promise<unknown>
  readonly check: (stream: Stream) => Promise<unknown>
  readonly expected: unknown
}

const CASES: readonly Case[] = [
  {
    does: 'continues where it ended',
    change: (stream) => stream.append('3', { matchSeqNum: 3 }),
    check: async (stream) => [
      (await stream.append('4', { matchSeqNum: 4 })).end.seqNum,
      await readAll(stream),
    ],
    expected: [5, ['0', '1', '2', '3', '4']],
  },
  {
    does: 'rejects conditions that do not hold',
    change: async () => {},
    check: (stream) => appends(stream, { matchSeqNum: 2 }),
    expected: 'seq_num_mismatch',
  },
  {
    does: 'keeps its fencing token',
    change: (stream) => stream.fence('writer'),
    check: async (stream) => [
      await appends(stream, { fencingToken: 'other' }),
      await appends(stream, { fencingToken: 'writer' }),
    ],
    expected: ['fencing_token_mismatch', 'ok'],
  },
  {
    does: 'keeps its trim point',
    change: (stream) => stream.trim(2),
    check: async (stream) => (await stream.readBatch({ seqNum: 0 })).records[0]?.body,
    expected: '2',
  },
  {
    does: 'remembers its producers',
    change: (stream) => stream.append('x', PRODUCER),
    check: async (stream) => (await stream.append('x', PRODUCER)).duplicate,
    expected: true,
  },
  {
    does: 'stays closed',
    change: (stream) => stream.close(),
    check: (stream) => appends(stream, {}),
    expected: 'stream_closed',
  },
  {
    does: 'has the configuration that it got',
    change: (stream) => stream.reconfigure({ timestamping: { mode: 'client-require' } }),
    check: (stream) => appends(stream, {}),
    expected: 'invalid',
  },
  {
    does: 'begins at 0 if it was deleted and created again',
    change: async (stream) => {
      await stream.append('x', PRODUCER)
      await stream.delete()
      await basin.createStream(stream.name)
    },
    check: async (stream) => [
      (await stream.append('again', { matchSeqNum: 0, ...PRODUCER })).duplicate,
      await readAll(stream),
    ],
    expected: [undefined, ['again']],
  },
  {
    does: 'is not found if it was deleted',
    change: (stream) => stream.delete(),
    check: (stream) => outcomeOf(stream.checkTail()),
    expected: 'stream_not_found',
  },
]

const TITLED = CASES.map((each) => [each.does, each] as const)

describe.each(ROOM)('a stream that was evicted from a cache with room for %d', (room) => {
  beforeAll(() => {
    cachedStreams = room
  })

  async function written(name: string): Promise<Stream> {
    const stream = basin.stream(name)
    // It is evicted before each use.
    for (const body of ['0', '1', '2']) {
      await stream.append(body)
      await evict()
    }
    return stream
  }

  it.each(TITLED)('%s', async (_, { change, check, expected }) => {
    const stream = await written('s')
    await change(stream)
    await evict()
    expect(await check(stream)).toEqual(expected)
  })

  it.each(['é\u{1f600}', 'x'.repeat(512)])('may have any name (%#)', async (name) => {
    expect(await readAll(await written(name))).toEqual(['0', '1', '2'])
  })

  it.each(TITLED)('%s, whichever engine did it', async (_, { change, check, expected }) => {
    const stream = await written('s')
    const other = await open({ storage, clock, limits: { cachedStreams } })
    await change(other.basin('basin').stream('s'))
    expect(await check(stream)).toEqual(expected)
    await other.close()
  })

  it('is still followed', async () => {
    const stream = await written('s')
    const seen: string[] = []
    const following = stream.follow({ seqNum: 3 }).records$.subscribe(({ body }) => seen.push(body))
    await clock.settle()
    await evict()
    await stream.append('3')
    await clock.settle()
    expect(seen).toEqual(['3'])
    following.unsubscribe()
  })
})

describe('the streams in the cache', () => {
  it('are no more than are allowed and in use', async () => {
    const followed = Array.from({ length: 20 }, (_, i) =>
      basin.stream(`followed/${i}`).follow({}, { create: true }).records$.subscribe(),
    )
    await clock.settle()
    await evict(30)
    // One more, and the additions that pass those in use.
    expect(hw.stats().cachedStreams).toBeLessThanOrEqual(20 + cachedStreams + 3)
    for (const subscription of followed) subscription.unsubscribe()
    await clock.settle()
    await evict(30)
    expect(hw.stats().cachedStreams).toBeLessThanOrEqual(cachedStreams + 1)
    await hw.close()
    expect(hw.stats().cachedStreams).toBe(0)
  })
})
