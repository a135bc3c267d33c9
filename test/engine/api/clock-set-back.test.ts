import { expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { testClock, testStorage } from '../../support/index.ts'

async function openFollowing(waitMs?: number) {
  const clock = testClock()
  const hw = await open({ storage: testStorage(), clock, random: () => 0.5 })
  await hw.ensureBasin('my-basin')
  const stream = hw.basin('my-basin').stream('stream')
  await hw.basin('my-basin').ensureStream('stream')
  const seen: string[] = []
  const read = async () => {
    for await (const { kind } of stream.follow({ seqNum: 0, waitMs }).events()) seen.push(kind)
    seen.push('end')
  }
  void read().catch((error) => seen.push(error.code))
  await clock.settle()
  return { hw, clock, stream, seen }
}

it.each([3_600_000, 5_000])('heartbeats continue while the clock is set back by %d ms', async (ms) => {
  const { hw, clock, seen } = await openFollowing()
  expect(seen).toEqual(['heartbeat'])
  await clock.advance(1_000)
  clock.jump(-ms)
  await clock.advance(14_000)
  expect(seen).toEqual(['heartbeat', 'heartbeat'])
  await hw.close()
})

it('a wait ends in time although the clock is set back', async () => {
  const { hw, clock, seen } = await openFollowing(4_000)
  clock.jump(-3_600_000)
  await clock.advance(4_000)
  expect(seen).toEqual(['heartbeat', 'end'])
  await hw.close()
})

it('a wait that begins again before the clock is set back lasts at most twice as long', async () => {
  const { hw, clock, stream, seen } = await openFollowing(4_000)
  await clock.advance(1_000)
  await stream.append({ body: 'a' })
  clock.jump(-3_600_000)
  await clock.advance(7_000)
  expect(seen).toEqual(['heartbeat', 'batch', 'end'])
  await hw.close()
})
