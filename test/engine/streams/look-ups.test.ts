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
})
