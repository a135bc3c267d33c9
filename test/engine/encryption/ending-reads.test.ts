import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import type { HeadwaterError, ReadBatch, ReadQuery, Stream } from '../../../src/index.ts'
import { onEveryKindOfStorage, testStorage, wrapped } from '../../support/index.ts'
import { aesOfNode, type EncryptedEngine, key, openEncrypted, type SlowSuite, slowSuite } from './support.ts'

interface World extends EncryptedEngine {
  readonly suite: SlowSuite
  readonly storage: SlowStorage
  /** Ended by revoking the token `token`. */
  readonly stream: Stream
}

interface SlowStorage {
  /** While set, reads of the storage or lookups of the head wait. */
  slow: boolean | 'head'
  readonly waiting: number
  answer(): void
}

let world: World
afterEach(() => world.hw.close())

async function start(kept = testStorage()): Promise<World> {
  const suite = slowSuite(aesOfNode)
  const waiting: (() => void)[] = []
  const storage: SlowStorage = {
    slow: false,
    get waiting() {
      return waiting.length
    },
    answer() {
      for (const go of waiting.splice(0)) go()
    },
  }
  const inner = wrapped(kept, {}, (session) => ({
    read: async (logId, range) => {
      if (storage.slow === true) await new Promise<void>((go) => waiting.push(go))
      return session.read(logId, range)
    },
    head: async (logId) => {
      if (storage.slow === 'head') await new Promise<void>((go) => waiting.push(go))
      return session.head(logId)
    },
  }))
  const engine = await openEncrypted(suite, { storage: inner })
  const scope = { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['read'] } as const
  const holder = engine.hw.as(await engine.hw.issueAccessToken({ id: 'token', scope }))
  const stream = holder.basin('encrypted').stream('stream', { encryptionKey: key(1) })
  return { ...engine, suite, storage, stream }
}

interface Reading {
  /** Done once it waits for its next batch. */
  readonly whenWaiting?: () => unknown
  readonly iterator: AsyncIterator<ReadBatch<'string'>>
  readonly abort: AbortController
}

function readFrom(seqNum: number, query: ReadQuery = {}): Reading {
  const abort = new AbortController()
  const session = world.stream.readSession({ seqNum, ...query }, { signal: abort.signal })
  return { iterator: session.batches(), abort }
}

/** Each opens a session whose next batch waits in one place. */
const HELD_UP: [string, () => Promise<Reading>][] = [
  [
    'the cipher, opening what is stored',
    async () => {
      await world.with().append('a')
      world.suite.slow = true
      return readFrom(0)
    },
  ],
  [
    'the cipher, opening what comes live',
    async () => {
      await world.with().append('a')
      const reading = readFrom(0)
      await reading.iterator.next()
      world.suite.slow = true
      return { ...reading, whenWaiting: () => world.with().append('b') }
    },
  ],
  [
    'the cipher, opening what a bound cuts through',
    async () => {
      await world.with().append('a')
      const reading = readFrom(0)
      const bounded = world.stream.readSession(
        { seqNum: 0, count: 3, waitSeconds: 60 },
        { signal: reading.abort.signal },
      )
      const iterator = bounded.batches()
      await iterator.next()
      world.suite.slow = true
      return { ...reading, iterator, whenWaiting: () => world.with().append(['b', 'c', 'd']) }
    },
  ],
  [
    'the storage, in the middle of what is stored',
    async () => {
      for (const body of ['a', 'b', 'c']) await world.with().append(body.repeat(1_000_000))
      const reading = readFrom(0)
      // The storage returns two of them at a time.
      for (let i = 0; i < 2; i++) await reading.iterator.next()
      world.storage.slow = true
      return reading
    },
  ],
]

const ENDS: [string, (reading: Reading) => unknown, string][] = [
  ['its signal', ({ abort }) => abort.abort(new Error('gone')), 'gone'],
  ['its consumer', ({ iterator }) => iterator.return?.(), 'done'],
  [
    'the end of its token',
    () => world.hw.revokeAccessToken('token'),
    'the access token was revoked or has expired',
  ],
  ['the end of the engine', () => world.hw.close(), 'headwater is closed'],
]

/** The outcome, once it has settled. */
function told(promise: Promise<IteratorResult<ReadBatch<'string'>> | ReadBatch<'string'>>): string[] {
  const ends: string[] = []
  promise.then(
    (result) => ends.push('done' in result && result.done ? 'done' : 'a batch'),
    (error: HeadwaterError) => ends.push(error.message),
  )
  return ends
}

onEveryKindOfStorage(() =>
  describe.each(HELD_UP)('a session that waits for %s', (_, hold) => {
    it.each(ENDS)('is ended by %s', async (_, end, expected) => {
      world = await start()
      const before = world.clock.pending
      const reading = await hold()
      const ends = told(reading.iterator.next())
      await world.clock.settle()
      await reading.whenWaiting?.()
      await expect.poll(() => world.suite.waiting + world.storage.waiting).toBe(1)
      expect(ends).toEqual([])
      const ended = end(reading)
      await expect.poll(() => ends).toEqual([expected])
      await ended
      expect(world.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
      expect(getEventListeners(reading.abort.signal, 'abort')).toEqual([])

      // A late result is dropped.
      world.storage.answer()
      world.suite.answer()
      await world.clock.settle()
      expect(ends).toEqual([expected])
      expect(await reading.iterator.next()).toEqual({ done: true, value: undefined })
      expect(world.clock.pending).toBeLessThanOrEqual(before)
    })
  }),
)

describe('a read of one batch that waits', () => {
  it.each([
    ['the cipher', () => world.suite],
    ['the storage', () => world.storage],
  ])('for %s ends on its signal and with the engine', async (_, slow) => {
    world = await start()
    await world.with().append('a')
    slow().slow = true
    const abort = new AbortController()
    const aborted = told(world.stream.read({ seqNum: 0 }, { signal: abort.signal }))
    const closed = told(world.stream.read({ seqNum: 0 }))
    await expect.poll(() => slow().waiting).toBe(2)
    abort.abort(new Error('gone'))
    await expect.poll(() => aborted).toEqual(['gone'])
    expect(closed).toEqual([])
    await world.hw.close()
    await expect.poll(() => closed).toEqual(['headwater is closed'])
    slow().answer()
    await world.clock.settle()
    expect([aborted, closed]).toEqual([['gone'], ['headwater is closed']])
    expect(world.hw.stats().openReads).toBe(0)
  })
})

describe('a session that waits for the storage', () => {
  it('ends before its first record on its signal and with its token', async () => {
    world = await start()
    await world.with().append('a')
    world.storage.slow = true
    const [one, other] = [readFrom(0), readFrom(0, { waitSeconds: 0 })]
    const [aborted, revoked] = [told(one.iterator.next()), told(other.iterator.next())]
    await expect.poll(() => world.storage.waiting).toBe(2)
    one.abort.abort(new Error('gone'))
    await expect.poll(() => aborted).toEqual(['gone'])
    await world.hw.revokeAccessToken('token')
    await expect.poll(() => revoked).toEqual(['the access token was revoked or has expired'])
    world.storage.answer()
    await world.clock.settle()
    expect(world.hw.stats().openReads).toBe(0)
  })

  it('ends after its last record when its consumer ends it', async () => {
    world = await start(testStorage({ shared: true }))
    await world.with().append('a')
    const { iterator } = readFrom(0)
    await iterator.next()
    world.storage.slow = 'head'
    const ends = told(iterator.next())
    await expect.poll(() => world.storage.waiting).toBe(1)
    void iterator.return?.()
    await expect.poll(() => ends).toEqual(['done'])
    world.storage.answer()
    await world.clock.settle()
    expect(world.hw.stats().openReads).toBe(0)
  })

  it('ends with the engine while it is opened', async () => {
    world = await start(testStorage({ shared: true }))
    await world.with().append('a')
    world.storage.slow = 'head'
    const ends = told(readFrom(0).iterator.next())
    await expect.poll(() => world.storage.waiting).toBe(1)
    const closing = world.hw.close()
    world.storage.slow = true
    world.storage.answer()
    await expect.poll(() => ends).toEqual(['headwater is closed'])
    await closing
  })
})
