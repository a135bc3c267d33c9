import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { silent, testClock, testStorage } from '../../support/index.ts'

describe('a storage with unreliable notifications', () => {
  it.each([
    ['hint', '5s'],
    ['none', '1s'],
  ] as const)(
    '%s: followers get what other engines appended by polling, and the poll ends with them',
    async (notifications, poll) => {
      const data = testStorage()
      const clock = testClock({ now: 1_000_000 })
      const writer = await open({ storage: data, clock })
      await writer.ensureBasin('basin')
      await writer.basin('basin').ensureStream('s')
      const hw = await open({ storage: silent(data, notifications), clock })
      const idle = clock.pending
      const seen: string[] = []
      const following = hw
        .basin('basin')
        .stream('s')
        .follow({ seqNum: 0 })
        .records$.subscribe(({ body }) => seen.push(body))
      await clock.settle()
      for (const body of ['a', 'b']) {
        await writer.basin('basin').stream('s').append(body)
        await clock.advance(poll)
      }
      expect(seen).toEqual(['a', 'b'])
      following.unsubscribe()
      await clock.advance('10s')
      expect(clock.pending).toBe(idle)
      await Promise.all([hw.close(), writer.close()])
      expect(clock.pending).toBe(0)
    },
  )
})
