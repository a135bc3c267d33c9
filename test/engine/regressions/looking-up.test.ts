import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { wrapped } from '../wrapped-storage.ts'

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (error) => error.code ?? String(error),
  )

describe('looking a stream up', () => {
  it.each(['append', 'read'] as const)(
    'finds what was created since the look-up began that others wait for: %s',
    async (purpose) => {
      // The first answer about the stream arrives when the test says so.
      let answer: (() => void) | undefined
      const storage = wrapped(testStorage(), {}, (session) => ({
        get: async (collection, key) => {
          const document = await session.get(collection, key)
          if (collection === 'streams' && answer === undefined) {
            await new Promise<void>((go) => {
              answer = go
            })
          }
          return document
        },
      }))
      const clock = testClock()
      const hw = await open({ storage, clock, autoCreate: false })
      await hw.ensureBasin('basin')
      const basin = hw.basin('basin')
      const stream = basin.stream('stream')
      const use = () => outcome(purpose === 'append' ? stream.append('a') : stream.checkTail())
      const before = use()
      await clock.settle()
      await basin.createStream('stream')
      const after = [use(), use()]
      answer!()
      expect([await before, ...(await Promise.all(after))]).toEqual(['stream_not_found', 'ok', 'ok'])
      await hw.close()
    },
  )
})
