import { describe, expect, it } from 'vitest'
import type { Engine, Stream } from '../../../../src/index.ts'
import { testStorage, wrapped } from '../../../support/index.ts'
import { closeAfterEach, openSession, SESSION_NAMES, start } from './open-sessions.ts'
import { EVERYTHING, outcome } from './support.ts'

closeAfterEach()

describe('sessions of a token', () => {
  it('end together; those of other tokens and of the owner continue', async () => {
    const engine = await start()
    const { hw, clock } = engine
    const callers = [await engine.issued({ id: 'mine' }), await engine.issued({ id: 'other' }), hw]
    const open = (view: Engine) =>
      SESSION_NAMES.map((name) => openSession(name, view.basin('basin').stream('stream')).ends)
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
    const view = await engine.issued({ expiresAt: new Date(clock.now() + 3_600_000) })
    const stream = view.basin('basin').stream('stream')
    const before = clock.pending
    const cursors = await Promise.all(Array.from({ length: 50 }, () => stream.openCursor({}, {})))
    // The timer of the expiry, and that of the poll for revocations by other engines.
    expect(clock.pending).toBe(before + 2)
    for (const cursor of cursors) cursor!.close()
    expect(clock.pending).toBe(before)
  })

  it('are still watched when another session of the same token ends', async () => {
    const engine = await start()
    const view = await engine.issued()
    const stream = view.basin('basin').stream('stream')
    const [first, second] = [(await stream.openCursor({}, {}))!, (await stream.openCursor({}, {}))!]
    first.close()
    first.close()
    const next = outcome(Promise.resolve(second.next()))
    await engine.hw.revokeAccessToken('token')
    expect(await next).toBe('authn')
  })

  it('do not poll for revocations on an exclusive storage', async () => {
    const storage = wrapped(testStorage(), { shared: false }, () => ({}))
    const engine = await start({ storage })
    const view = await engine.issued()
    const before = engine.clock.pending
    const cursor = await view.basin('basin').stream('stream').openCursor({}, {})
    expect(engine.clock.pending).toBe(before)
    cursor!.close()
  })

  it.each<[string, (stream: Stream) => Promise<unknown>]>([
    ['a read', (stream) => stream.append('a').then(() => stream.readBatch({ seqNum: 0 }))],
    ['a read of what is not there', (stream) => outcome(stream.readBatch({ seqNum: 9 }))],
    ['a session that starts beyond the tail', (stream) => outcome(stream.openCursor({ seqNum: 9 }, {}))],
    [
      'a session with nothing to deliver',
      (stream) => stream.openCursor({ waitMs: 0 }, { allowsEmpty: 'session' }),
    ],
    ['a query without meaning', (stream) => outcome(stream.openCursor({ seqNum: 1, tailOffset: 1 }, {}))],
    [
      'a read session that came to its end',
      async (stream) => {
        await stream.append('a')
        for await (const _ of stream.read({ seqNum: 0, count: 1 }).batches());
      },
    ],
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
    await use(view.basin('basin').stream('stream'))
    await engine.clock.settle()
    expect(engine.clock.pending).toBe(before)
  })

  it('deliver records that were available before the end', async () => {
    const engine = await start()
    const view = await engine.issued()
    await engine.hw.basin('basin').stream('stream').append(['a', 'b'])
    const cursor = (await view.basin('basin').stream('stream').openCursor({ seqNum: 0 }, {}))!
    const first = await cursor.next()
    expect(first?.kind === 'batch' && first.batch.count).toBe(2)
    const next = outcome(Promise.resolve(cursor.next()))
    await engine.hw.revokeAccessToken('token')
    expect(await next).toBe('authn')
  })
})

describe('a producer', () => {
  it('fails with `authn` for records that were not durable when the token ended', async () => {
    const engine = await start()
    const view = await engine.issued()
    const producer = view.basin('basin').stream('stream').producer({ lingerMs: 5 })
    const first = await producer.submit('a')
    await engine.clock.advance(5)
    expect((await first.ack()).seqNum).toBe(0)
    const second = await producer.submit('b')
    const before = engine.clock.pending
    await engine.hw.revokeAccessToken('token')
    await engine.clock.advance(5)
    expect(await outcome(second.ack())).toBe('authn')
    expect(await outcome(producer.submit('c'))).toBe('authn')
    expect(await outcome(producer.close())).toBe('authn')
    expect(engine.clock.pending).toBeLessThan(before)
    expect((await engine.hw.basin('basin').stream('stream').checkTail()).seqNum).toBe(1)
  })
})

describe('an append session', () => {
  it('appends nothing after the token ends, and rejects commands that are not permitted', async () => {
    const engine = await start()
    const { opGroups: _, ...resources } = EVERYTHING
    const view = await engine.issued({ scope: { ...resources, ops: ['append', 'fence'] } })
    const stream = view.basin('basin').stream('stream')
    const session = await stream.appendSession()
    await (await session.submit('a')).ack()
    const fence = { headers: [['', 'fence']] as const, body: 'mine' }
    await (await session.submit(['b', fence])).ack()
    const trim = { headers: [['', 'trim']] as const, body: new Uint8Array(8) }
    expect(await outcome(session.submit(['c', trim]))).toBe('permission_denied')
    expect(await outcome(session.submit('d'))).toBe('permission_denied')
    expect(await outcome(session.close())).toBe('permission_denied')
    const laterSession = await stream.appendSession()
    await engine.hw.revokeAccessToken('token')
    expect(await outcome(laterSession.submit('e'))).toBe('authn')
    expect((await engine.hw.basin('basin').stream('stream').checkTail()).seqNum).toBe(3)
  })
})
