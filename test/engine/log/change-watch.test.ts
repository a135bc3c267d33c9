import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { splitting } from '../../storage/wrapped-storage.ts'
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

it('followers get an append of another engine in parts with the tail behind all of it', async () => {
  const storage = splitting()
  const clock = testClock({ now: 1_000_000 })
  const [writer, hw] = [await open({ storage, clock }), await open({ storage, clock })]
  await writer.ensureBasin('basin')
  await writer.basin('basin').ensureStream('s')
  const batches: (readonly [last: number, tail: number | undefined])[] = []
  const following = (async () => {
    const stream = hw.basin('basin').stream('s')
    for await (const { lastSeqNum, tail } of stream.follow({ seqNum: 0, count: 3 }).batches()) {
      batches.push([lastSeqNum, tail?.seqNum])
    }
  })()
  await clock.settle()
  await writer
    .basin('basin')
    .stream('s')
    .append(['a', 'b', 'c'].map((body) => body.repeat(50_000)))
  await clock.settle()
  await following
  expect(batches).toEqual([
    [0, 3],
    [1, 3],
    [2, 3],
  ])
  await Promise.all([hw.close(), writer.close()])
})

it('followers get all that another engine appended before it closed the stream', async () => {
  const storage = testStorage()
  const clock = testClock({ now: 1_000_000 })
  const [writer, hw] = [await open({ storage, clock }), await open({ storage, clock })]
  await writer.ensureBasin('basin')
  await writer.basin('basin').ensureStream('s')
  const tails: unknown[] = []
  const following = (async () => {
    for await (const { lastSeqNum, tail } of hw.basin('basin').stream('s').follow({ seqNum: 0 }).batches()) {
      tails.push([lastSeqNum, tail?.closed])
    }
  })()
  await clock.settle()
  const written = writer.basin('basin').stream('s')
  await Promise.all([written.append('a'), written.append('b'), written.close()])
  await clock.settle()
  await following
  // A client ends, and a mirror rests, at the first tail that is closed.
  expect(tails).toEqual([
    [0, undefined],
    [1, undefined],
    [2, true],
  ])
  await Promise.all([hw.close(), writer.close()])
})
