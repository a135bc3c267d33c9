import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { deferred, outcomeOf, testClock, testStorage, wrapped } from '../../support/index.ts'

describe('looking up a stream', () => {
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

  it.each(['append', 'read'] as const)(
    'applies the creation policy of each caller to a shared lookup: %s',
    async (purpose) => {
      const hw = await open({ storage: testStorage(), clock: testClock() })
      await hw.ensureBasin('basin')
      const use = (create: boolean) => {
        const stream = hw.basin('basin', { autoCreate: create }).stream('stream')
        return outcomeOf(purpose === 'append' ? stream.append('a') : stream.openCursor({}, { create }))
      }
      const outcomes = await Promise.all([false, false, true, false].map(use))
      expect(outcomes).toEqual(['stream_not_found', 'stream_not_found', 'ok', 'ok'])
      await hw.close()
    },
  )

  it('uses the names of each caller in errors of a shared lookup', async () => {
    const hw = await open({ storage: testStorage(), clock: testClock() })
    await hw.ensureBasin('basin')
    const scope = {
      basins: { prefix: '' },
      streams: { prefix: 'tenant/' },
      opGroups: { stream: { read: true } },
    }
    const token = await hw.issueAccessToken({ id: 'tenant', scope, autoPrefixStreams: true })
    const held = hw.as(token).basin('basin')
    const message = (call: Promise<unknown>) =>
      call.then(
        () => 'ok',
        (error: Error) => error.message,
      )
    // From here on, the token is cached.
    await message(held.stream('other').checkTail())
    const owned = hw.basin('basin', { autoCreate: false }).stream('tenant/stream')
    const checkTail = () => message(owned.checkTail())
    const messages = await Promise.all([checkTail(), message(held.stream('stream').checkTail()), checkTail()])
    expect(messages).toEqual([
      'stream `tenant/stream` in basin `basin` not found',
      'stream `stream` in basin `basin` not found',
      'stream `tenant/stream` in basin `basin` not found',
    ])
    await hw.close()
  })
})
