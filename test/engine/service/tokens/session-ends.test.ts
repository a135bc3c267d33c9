import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { Engine } from '../../../../src/index.ts'
import { testStorage, wrapped } from '../../../support/index.ts'
import { closeAfterEach, openSession, SESSION_NAMES, start } from './open-sessions.ts'
import type { AccessEngine } from './support.ts'

closeAfterEach()

describe.each(SESSION_NAMES)('%s', (name) => {
  async function opened(view: Engine, { clock }: AccessEngine) {
    const session = openSession(name, view.basin('basin').stream('stream'))
    await clock.settle()
    return session
  }

  it('ends with `authn` when the token is revoked, and releases everything', async () => {
    const engine = await start()
    const { hw, clock } = engine
    const view = await engine.issued()
    const before = [clock.pending, getEventListeners(hw.closing, 'abort').length]
    const { ends, signal } = await opened(view, engine)
    expect(ends).toEqual([])
    await hw.revokeAccessToken('token')
    await clock.settle()
    expect(ends).toEqual(['authn'])
    expect(hw.stats()).toMatchObject({
      openReads: 0,
      waitingReads: 0,
      pendingAppends: 0,
      appendBytesInFlight: 0,
    })
    expect([clock.pending, getEventListeners(hw.closing, 'abort').length]).toEqual(before)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('ends with `authn` exactly when the token expires', async () => {
    const engine = await start()
    const { hw, clock } = engine
    const view = await engine.issued({ expiresAt: new Date(clock.now() + 10_000) })
    const before = clock.pending
    const { ends } = await opened(view, engine)
    await clock.advance(9_999)
    expect(ends).toEqual([])
    await clock.advance(1)
    await clock.settle()
    expect(ends).toEqual(['authn'])
    expect(hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0, pendingAppends: 0 })
    expect(clock.pending).toBe(before)
  })

  it('ends within a second when another engine revokes the token', async () => {
    const storage = testStorage()
    const engine = await start({ storage })
    const other = await start({ storage, clock: engine.clock })
    const view = await engine.issued()
    const { ends } = await opened(view, engine)
    await engine.clock.advance('50s')
    expect(ends).toEqual([])
    await other.hw.revokeAccessToken('token')
    await engine.clock.advance(1000)
    await engine.clock.settle()
    expect(ends).toEqual(['authn'])
  })

  it('of a token that was replaced ends', async () => {
    const storage = testStorage()
    const engine = await start({ storage })
    const other = await start({ storage, clock: engine.clock })
    const view = await engine.issued()
    const { ends } = await opened(view, engine)
    await other.hw.revokeAccessToken('token')
    await other.issued()
    await engine.clock.advance(1000)
    await engine.clock.settle()
    expect(ends).toEqual(['authn'])
  })

  it('continues when other tokens are revoked, expire or cannot be read', async () => {
    const real = testStorage()
    let fails = false
    const storage = wrapped(real, {}, (session) => ({
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
    const { ends } = await opened(view, engine)
    await hw.revokeAccessToken('revoked')
    await hw.setRootToken('another-root-token')
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

  it('of the root token ends when it is replaced, here or by another engine', async () => {
    const storage = testStorage()
    const engine = await start({ storage })
    const other = await start({ storage, clock: engine.clock })
    const first = (await engine.hw.createRootToken())!
    const byThisEngine = await opened(engine.hw.as(first), engine)
    await engine.hw.setRootToken(first)
    await engine.clock.advance(1000)
    expect(byThisEngine.ends).toEqual([])
    await engine.hw.setRootToken('another-root-token')
    await engine.clock.settle()
    expect(byThisEngine.ends).toEqual(['authn'])
    const byOtherEngine = await opened(engine.hw.as('another-root-token'), engine)
    await other.hw.setRootToken('yet-another-root-token')
    await engine.clock.advance(1000)
    expect(byOtherEngine.ends).toEqual(['authn'])
  })

  // The revocation comes before or after each of the calls to the storage that opening makes.
  it.each(Array.from({ length: 10 }, (_, at) => at))(
    'ends or is rejected when the token is revoked while it opens (%d)',
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
        head: async (logId) => {
          await maybeRevoke()
          return session.head(logId)
        },
      }))
      const engine = await start({ storage })
      const view = await engine.issued()
      const timers = engine.clock.pending
      revoke = () => engine.hw.revokeAccessToken('token')
      left = at
      const { ends } = await opened(view, engine)
      if (left !== Number.POSITIVE_INFINITY) {
        expect(at).toBeGreaterThan(3)
        left = Number.POSITIVE_INFINITY
        await revoke()
      }
      await engine.clock.settle()
      expect(ends).toEqual(['authn'])
      expect(engine.hw.stats()).toMatchObject({ openReads: 0, waitingReads: 0, pendingAppends: 0 })
      expect(engine.clock.pending).toBe(timers)
    },
  )
})
