import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import type { HeadwaterError, ReadBatch, Stream } from '../../../src/index.ts'
import { testStorage, wrapped } from '../../support/index.ts'
import { aesOfNode, type EncryptedEngine, key, openEncrypted, type SlowSuite, slowSuite } from './support.ts'

interface SlowEngine extends EncryptedEngine {
  readonly suite: SlowSuite
  readonly storage: SlowStorage
  /** Ended by revoking the token `token`. */
  readonly stream: Stream
}

interface SlowStorage {
  /** Reads of the storage wait while it is set. */
  slow: boolean
  readonly waiting: number
  release(): void
}

let engine: SlowEngine
afterEach(() => engine.hw.close())

async function start(): Promise<SlowEngine> {
  const suite = slowSuite(aesOfNode)
  const waiting: (() => void)[] = []
  const storage: SlowStorage = {
    slow: false,
    get waiting() {
      return waiting.length
    },
    release() {
      for (const resolve of waiting.splice(0)) resolve()
    },
  }
  const slow = wrapped(testStorage(), {}, (session) => ({
    read: async (logId, range) => {
      if (storage.slow) await new Promise<void>((resolve) => waiting.push(resolve))
      return session.read(logId, range)
    },
  }))
  const engine = await openEncrypted(suite, { storage: slow })
  const scope = { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['read'] } as const
  const holder = engine.hw.as(await engine.hw.issueAccessToken({ id: 'token', scope }))
  const stream = holder.basin('encrypted').stream('stream', { encryptionKey: key(1) })
  return { ...engine, suite, storage, stream }
}

interface Reading {
  /** Called once the session waits for its next batch. */
  readonly whenWaiting?: () => unknown
  readonly iterator: AsyncIterator<ReadBatch<'string'>>
  readonly abort: AbortController
}

function readFrom(seqNum: number): Reading {
  const abort = new AbortController()
  const session = engine.stream.follow({ seqNum }, { signal: abort.signal })
  return { iterator: session.batches(), abort }
}

/** Each opens a session whose next batch waits for one component. */
const WAITS: [string, () => Promise<Reading>][] = [
  [
    'the cipher, opening a stored block',
    async () => {
      await engine.with().append('a')
      engine.suite.slow = true
      return readFrom(0)
    },
  ],
  [
    'the cipher, opening a live batch',
    async () => {
      await engine.with().append('a')
      const reading = readFrom(0)
      await reading.iterator.next()
      engine.suite.slow = true
      return { ...reading, whenWaiting: () => engine.with().append('b') }
    },
  ],
  [
    'the storage, in the middle of the history',
    async () => {
      for (const body of ['a', 'b', 'c']) await engine.with().append(body.repeat(1_000_000))
      const reading = readFrom(0)
      // The storage returns two of them at a time.
      for (let i = 0; i < 2; i++) await reading.iterator.next()
      engine.storage.slow = true
      return reading
    },
  ],
]

const ENDS: [string, (reading: Reading) => unknown, string][] = [
  ['its signal', ({ abort }) => abort.abort(new Error('aborted')), 'aborted'],
  ['its consumer', ({ iterator }) => iterator.return?.(), 'done'],
  [
    'the end of its token',
    () => engine.hw.revokeAccessToken('token'),
    'the access token was revoked or has expired',
  ],
  ['the end of the engine', () => engine.hw.close(), 'headwater is closed'],
]

/** The outcome, once it has settled. */
function outcomesOf(promise: Promise<IteratorResult<ReadBatch<'string'>> | ReadBatch<'string'>>): string[] {
  const outcomes: string[] = []
  promise.then(
    (result) => outcomes.push('done' in result && result.done ? 'done' : 'a batch'),
    (error: HeadwaterError) => outcomes.push(error.message),
  )
  return outcomes
}

describe.each(WAITS)('a session that waits for %s', (_, hold) => {
  it.each(ENDS)('is ended by %s', async (_, end, expected) => {
    engine = await start()
    const before = engine.clock.pending
    const reading = await hold()
    const outcomes = outcomesOf(reading.iterator.next())
    await engine.clock.settle()
    await reading.whenWaiting?.()
    await expect.poll(() => engine.suite.waiting + engine.storage.waiting).toBe(1)
    expect(outcomes).toEqual([])
    const ended = end(reading)
    await expect.poll(() => outcomes).toEqual([expected])
    await ended
    expect(engine.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0 })
    expect(getEventListeners(reading.abort.signal, 'abort')).toEqual([])

    // A late result is dropped.
    engine.storage.release()
    engine.suite.release()
    await engine.clock.settle()
    expect(outcomes).toEqual([expected])
    expect(await reading.iterator.next()).toEqual({ done: true, value: undefined })
    expect(engine.clock.pending).toBeLessThanOrEqual(before)
  })
})
