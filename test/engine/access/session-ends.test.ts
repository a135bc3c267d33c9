import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { type Engine, open, type Stream } from '../../../src/index.ts'
import { deferred, gated, testClock, testStorage, wrapped } from '../../support/index.ts'
import { type AccessEngine, EVERYTHING, openWithTokens, outcome } from './support.ts'

const engines: AccessEngine[] = []
afterEach(async () => {
  const started = engines.splice(0)
  for (const { hw } of started) await hw.close()
  // No timer is left.
  for (const { clock } of started) expect(clock.pending).toBe(0)
})

async function start(options: Parameters<typeof openWithTokens>[0] = {}): Promise<AccessEngine> {
  const engine = await openWithTokens(options)
  engines.push(engine)
  return engine
}

const streamOf = (view: Engine) => view.basin('basin').stream('stream')

/** An input that never comes. */
const idle = (): AsyncIterable<string> => ({
  [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }),
})

/** Results before the end do not matter. */
async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

/** Each opens an idle session, and settles when the session ends. */
const SESSIONS: Readonly<Record<string, (stream: Stream, signal: AbortSignal) => Promise<unknown>>> = {
  'for await': (stream, signal) => drain(stream.follow({}, { signal })),
  events: (stream, signal) => drain(stream.follow({}, { signal }).events()),
  observable: (stream, signal) =>
    new Promise<void>((complete, error) => {
      stream.follow({}, { as: 'bytes', signal }).records$.subscribe({ complete, error })
    }),
  cursor: async (stream) => {
    const cursor = (await stream.openCursor({}, {}))!
    while ((await cursor.next()) !== undefined);
  },
  'long poll': (stream, signal) => stream.readBatch({ tailOffset: 0, waitMs: 60_000 }, { signal }),
  'append session': async (stream, signal) => {
    const session = await stream.appendSession({ signal })
    await new Promise<void>((complete, error) => session.acks$.subscribe({ complete, error }))
  },
  appendAll: (stream, signal) => drain(stream.appendAll(idle(), { signal })),
}
const SESSION_NAMES = Object.keys(SESSIONS)

/** Opens a session on a stream; adds its outcome to `ends`: `ok` or the code of an error. */
function openSession(name: string, stream: Stream): { ends: string[]; signal: AbortSignal } {
  const { signal } = new AbortController()
  const ends: string[] = []
  void outcome(SESSIONS[name]!(stream, signal)).then((end) => ends.push(end))
  return { ends, signal }
}

const ROOT = 'the-root-token-of-it'
const NOTHING_OPEN = { openReads: 0, waitingReads: 0, pendingAppends: 0, appendBytesInFlight: 0 }

interface End {
  /** Whether the session is one of the root token. */
  readonly isOfRoot?: boolean
  readonly expiresInMs?: number
  /** Ends the token. `other` is another engine on the storage. */
  readonly end: (engine: AccessEngine, other: AccessEngine) => Promise<unknown>
}

const ENDS: Readonly<Record<string, End>> = {
  'is revoked': { end: ({ hw }) => hw.revokeAccessToken('token') },
  'is revoked by another engine': {
    end: async ({ clock }, { hw }) => {
      await hw.revokeAccessToken('token')
      await clock.advance('1s')
    },
  },
  'is replaced by another engine': {
    end: async ({ clock }, other) => {
      await other.hw.revokeAccessToken('token')
      await other.issued()
      await clock.advance('1s')
    },
  },
  expires: { expiresInMs: 20_000, end: ({ clock }) => clock.advance('1s') },
  'is the root token and is replaced': { isOfRoot: true, end: ({ hw }) => hw.setRootToken(`${ROOT}!`) },
  'is the root token and is replaced by another engine': {
    isOfRoot: true,
    end: async ({ clock }, { hw }) => {
      await hw.setRootToken(`${ROOT}!`)
      await clock.advance('1s')
    },
  },
}

describe.each(SESSION_NAMES)('a session: %s', (name) => {
  it.each(Object.entries(ENDS))(
    'ends with `authn` within a second when its token %s, and releases everything',
    async (_, { isOfRoot = false, expiresInMs, end }) => {
      const storage = testStorage()
      const engine = await start({ storage })
      const { hw, clock } = engine
      const other = await start({ storage, clock })
      await hw.setRootToken(ROOT)
      const expiresAt = expiresInMs === undefined ? null : new Date(clock.now() + expiresInMs)
      const view = isOfRoot ? hw.as(ROOT) : await engine.issued({ expiresAt })
      const before = [clock.pending, getEventListeners(hw.closing, 'abort').length]
      const { ends, signal } = openSession(name, streamOf(view))
      await clock.advance(19_999)
      expect(ends).toEqual([])
      await end(engine, other)
      await clock.settle()
      expect(ends).toEqual(['authn'])
      expect(hw.stats()).toMatchObject(NOTHING_OPEN)
      expect([clock.pending, getEventListeners(hw.closing, 'abort').length]).toEqual(before)
      expect(getEventListeners(signal, 'abort')).toEqual([])
    },
  )

  it('continues when other tokens are revoked, expire or cannot be read', async () => {
    let fails = false
    const storage = wrapped(testStorage(), {}, (session) => ({
      get: (collection, key) =>
        fails && collection === 'tokens'
          ? Promise.reject(new Error('no storage'))
          : session.get(collection, key),
    }))
    const errors: unknown[] = []
    const engine = await start({ storage, onBackgroundError: (error) => errors.push(error) })
    const { hw, clock } = engine
    const view = await engine.issued()
    await engine.issued({ id: 'revoked' })
    await engine.issued({ id: 'tok', expiresAt: new Date(clock.now() + 1000) })
    const { ends } = openSession(name, streamOf(view))
    await clock.settle()
    await hw.revokeAccessToken('revoked')
    await hw.setRootToken(ROOT)
    fails = true
    await clock.advance(10_000)
    expect(errors.length).toBeGreaterThan(0)
    fails = false
    await clock.advance(10_000)
    expect(ends).toEqual([])
    await hw.revokeAccessToken('token')
    await clock.settle()
    expect(ends).toEqual(['authn'])
  })

  // Opening makes several calls to the storage.
  it.each([0, 1, 2, 3])(
    'ends or is rejected when its token is revoked before call %d of opening',
    async (at) => {
      let left = Number.POSITIVE_INFINITY
      let revoke = async () => {}
      const maybeRevoke = async () => {
        if (left-- !== 0) return
        left = Number.POSITIVE_INFINITY
        await revoke()
      }
      const storage = wrapped(testStorage(), {}, (session) => ({
        get: async (collection, key) => {
          await maybeRevoke()
          const document = await session.get(collection, key)
          await maybeRevoke()
          return document
        },
        head: (logId) => maybeRevoke().then(() => session.head(logId)),
      }))
      const engine = await start({ storage })
      const view = await engine.issued()
      const timers = engine.clock.pending
      revoke = () => engine.hw.revokeAccessToken('token')
      left = at
      const { ends } = openSession(name, streamOf(view))
      await engine.clock.settle()
      expect(left).toBe(Number.POSITIVE_INFINITY)
      expect(ends).toEqual(['authn'])
      expect(engine.hw.stats()).toMatchObject(NOTHING_OPEN)
      expect(engine.clock.pending).toBe(timers)
    },
  )
})

describe('sessions of a token', () => {
  it('end together; those of other tokens and of the owner continue', async () => {
    const engine = await start()
    const { hw, clock } = engine
    const callers = [await engine.issued({ id: 'mine' }), await engine.issued({ id: 'other' }), hw]
    const open = (view: Engine) => SESSION_NAMES.map((name) => openSession(name, streamOf(view)).ends)
    const [mine, others, owners] = callers.map(open)
    await clock.settle()
    await hw.revokeAccessToken('mine')
    await clock.settle()
    const all = (...ends: string[]) => SESSION_NAMES.map(() => ends)
    expect([others, owners]).toEqual([all(), all()])
    await hw.close()
    await clock.settle()
    expect([mine, others, owners]).toEqual([all('authn'), all('closed'), all('closed')])
  })

  it('share one timer, which is cancelled with the last of them', async () => {
    const engine = await start()
    const { clock } = engine
    const stream = streamOf(await engine.issued({ expiresAt: new Date(clock.now() + 3_600_000) }))
    const before = clock.pending
    const cursors = await Promise.all(Array.from({ length: 50 }, () => stream.openCursor({}, {})))
    expect(clock.pending).toBe(before + 1)
    for (const cursor of cursors) cursor!.close()
    expect(clock.pending).toBe(before)
  })

  it('are still watched when another session of the same token ends', async () => {
    const engine = await start()
    const stream = streamOf(await engine.issued())
    const [first, second] = [(await stream.openCursor({}, {}))!, (await stream.openCursor({}, {}))!]
    first.close()
    first.close()
    const next = outcome(Promise.resolve(second.next()))
    await engine.hw.revokeAccessToken('token')
    expect(await next).toBe('authn')
  })

  it.each<[string, (stream: Stream) => Promise<unknown>]>([
    ['a read', (stream) => stream.append('a').then(() => stream.readBatch({ seqNum: 0 }))],
    ['a session that starts beyond the tail', (stream) => outcome(stream.openCursor({ seqNum: 9 }, {}))],
    ['an invalid query', (stream) => outcome(stream.openCursor({ seqNum: 1, tailOffset: 1 }, {}))],
    [
      'a read session that was left',
      async (stream) => {
        await stream.append('a')
        for await (const _ of stream.follow({ seqNum: 0 }).batches()) break
      },
    ],
    ['an append session that is closed', async (stream) => (await stream.appendSession()).close()],
    ['an append session that failed', async (stream) => outcome((await stream.appendSession()).submit([]))],
    [
      'a read that was given up',
      (stream) => {
        const controller = new AbortController()
        const read = stream.readBatch({ tailOffset: 0, waitMs: 60_000 }, { signal: controller.signal })
        controller.abort()
        return read.catch(() => {})
      },
    ],
  ])('are no longer watched after %s', async (_, use) => {
    const engine = await start()
    const view = await engine.issued({ expiresAt: new Date(engine.clock.now() + 3_600_000) })
    const before = engine.clock.pending
    await use(streamOf(view))
    await engine.clock.settle()
    expect(engine.clock.pending).toBe(before)
  })

  it('append nothing that waited for room when the token was revoked', async () => {
    const storage = gated(testStorage())
    const engine = await start({ storage, limits: { sessionInFlightBytes: 1_048_576 } })
    const session = await streamOf(await engine.issued()).appendSession()
    storage.holding = true
    const tickets = Array.from({ length: 10 }, () => session.submit('x'.repeat(900_000)))
    const outcomes = tickets.map((ticket) => outcome(ticket.then((accepted) => accepted.ack())))
    await engine.clock.settle()
    await engine.hw.revokeAccessToken('token')
    await engine.clock.settle()
    storage.holding = false
    storage.release()
    // The append in flight reports its outcome; the others are rejected.
    expect((await Promise.all(outcomes)).slice(1)).toEqual(Array(9).fill('authn'))
    expect((await streamOf(engine.hw).checkTail()).seqNum).toBeLessThanOrEqual(1)
  })

  it('fail in a producer with `authn` for records that were not durable', async () => {
    const engine = await start()
    const producer = streamOf(await engine.issued()).producer({ lingerMs: 5 })
    const first = await producer.submit('a')
    await engine.clock.advance(5)
    expect((await first.ack()).seqNum).toBe(0)
    const second = await producer.submit('b')
    await engine.hw.revokeAccessToken('token')
    await engine.clock.advance(5)
    const ends = [second.ack(), producer.submit('c'), producer.close()].map(outcome)
    expect(await Promise.all(ends)).toEqual(['authn', 'authn', 'authn'])
    expect((await streamOf(engine.hw).checkTail()).seqNum).toBe(1)
  })
})

describe('a session ends within a second of the revocation', () => {
  it('although its append is not durable yet', async () => {
    const storage = gated(testStorage())
    const { hw, clock, issued } = await start({ storage })
    const session = await streamOf(await issued()).appendSession()
    const ends: string[] = []
    session.acks$.subscribe({ error: ({ code }) => ends.push(code) })
    storage.holding = true
    void outcome(session.submit('x').then((ticket) => ticket.ack()))
    await clock.settle()
    await hw.revokeAccessToken('token')
    await clock.advance('1s')
    expect(ends).toEqual(['authn'])
    storage.holding = false
    storage.release()
    await clock.settle()
  })

  it('although the tokens of others are looked up slowly, or never', async () => {
    const clock = testClock()
    const shared = testStorage()
    let isSlow = false
    const storage = wrapped(shared, {}, (session) => ({
      async get(collection, key) {
        if (isSlow && key === 'stuck') await new Promise(() => {})
        if (isSlow && collection === 'tokens') await new Promise<void>((done) => clock.schedule(20, done))
        return session.get(collection, key)
      },
    }))
    const { hw } = await openWithTokens({ storage, clock })
    const other = await open({ storage: shared, clock })
    const ends: string[] = []
    for (const id of ['stuck', ...Array.from({ length: 60 }, (_, i) => `t${i}`)]) {
      const view = hw.as(await hw.issueAccessToken({ id, scope: EVERYTHING }))
      const cursor = (await streamOf(view).openCursor({}, {}))!
      void outcome(Promise.resolve(cursor.next())).then((code) => ends.push(`${id} ${code}`))
    }
    isSlow = true
    await clock.advance('1s')
    await other.revokeAccessToken('t59')
    await clock.advance('1s')
    expect(ends).toEqual(['t59 authn'])
  })
})

it.each<[string, jumpMs: number, expected: string[]]>([
  ['ends by its expiry although the machine slept', 2 * 3_600_000, ['authn']],
  ['continues until its expiry although the clock is set back', -3_600_000, []],
])('a session %s', async (_, jumpMs, expected) => {
  const clock = testClock()
  const { hw, issued } = await openWithTokens({ clock })
  const view = await issued({ expiresAt: new Date(clock.now() + 60_000) })
  const { ends } = openSession('cursor', streamOf(view))
  await clock.settle()
  clock.jump(jumpMs)
  await clock.advance(expected.length > 0 ? 2_000 : 61_000)
  expect(await outcome(streamOf(view).checkTail())).toBe(expected[0] ?? 'ok')
  expect(ends).toEqual(expected)
  await hw.close()
})

it.each(['this engine', 'another engine'])(
  'a token that is revoked by %s while it issues another leaves none behind',
  async (where) => {
    const shared = testStorage()
    const gate = deferred()
    const storage = wrapped(shared, {}, (session) => ({
      commit: async (changes) => {
        if (changes.some((change) => 'key' in change && change.key === 'child')) await gate.promise
        return session.commit(changes)
      },
    }))
    const { hw, clock, issued } = await openWithTokens({ storage })
    const revoker = where === 'this engine' ? hw : await open({ storage: shared, clock })
    const child = (await issued()).issueAccessToken({ id: 'child', scope: EVERYTHING })
    await clock.settle()
    await revoker.revokeAccessToken('token')
    gate.resolve()
    const token = await child.catch(() => 'none')
    expect(await outcome(hw.as(token).listBasins())).toBe('authn')
  },
)
