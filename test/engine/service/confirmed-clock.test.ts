import { describe, expect, it } from 'vitest'
import { createHandler } from '../../../adapters/http/index.ts'
import type { Engine, Storage } from '../../../src/index.ts'
import { openEngine, type TestClock, testClock, testStorage, wrapped } from '../../support/index.ts'

const DAY = 86_400_000
const HOUR = DAY / 24

/** How many blocks of logs the storage has freed. */
function countingStorage(): { readonly storage: Storage; readonly freed: () => number } {
  let freed = 0
  const storage = wrapped(testStorage(), {}, (session) => ({
    async reclaim(limits) {
      const reclaimed = await session.reclaim(limits)
      freed += reclaimed.logIds.length
      return reclaimed
    },
  }))
  return { storage, freed: () => freed }
}

async function opened(storage: Storage, clock: TestClock) {
  const engine = await openEngine({ storage, clock })
  await engine.hw
    .basin('basin')
    .stream('stream')
    .reconfigure({
      retentionPolicy: { ageSeconds: DAY / 1000 },
      deleteOnEmpty: { minAgeSeconds: 60 },
    })
  return engine
}

async function health(hw: Engine): Promise<string> {
  const handler = createHandler(hw, { auth: 'none' })
  return (await handler(new Request('http://localhost/health'))).text()
}

describe('a clock that steps forward', () => {
  it('hides expired records and deletes nothing, until it goes back', async () => {
    const clock = testClock()
    const { storage, freed } = countingStorage()
    const { hw, stream } = await opened(storage, clock)
    await stream.append('kept')
    clock.jump(36_500 * DAY)
    await clock.advance('10m')
    expect((await stream.readBatch({ seqNum: 0 })).records).toEqual([])
    expect(freed()).toBe(0)
    expect(hw.stats().expiryPaused).toBe(true)
    expect(await health(hw)).toBe('OK\nexpiry paused: the clock stepped')
    clock.jump(-36_500 * DAY)
    await clock.advance('2m')
    expect((await stream.readBatch({ seqNum: 0 })).records[0]?.body).toBe('kept')
    expect(hw.stats().expiryPaused).toBe(false)
    expect(await health(hw)).toBe('OK')
  })

  it('deletes nothing in an engine that was opened since', async () => {
    const clock = testClock()
    const { storage, freed } = countingStorage()
    const first = await opened(storage, clock)
    await first.stream.append('kept')
    await first.hw.close()
    clock.jump(400 * DAY)
    const second = await opened(storage, clock)
    await clock.advance('10m')
    expect(second.hw.stats().expiryPaused).toBe(true)
    await second.hw.close()
    clock.jump(-400 * DAY)
    const third = await opened(storage, clock)
    await clock.advance('10m')
    expect(freed()).toBe(0)
    expect((await third.stream.readBatch({ seqNum: 0 })).records[0]?.body).toBe('kept')
  })

  it('frees what has expired once it has run on for an hour, such as after a pause', async () => {
    const clock = testClock()
    const { storage, freed } = countingStorage()
    const { hw, stream } = await opened(storage, clock)
    await stream.append('old')
    await clock.advance('1m')
    clock.jump(30 * DAY)
    await clock.advance('58m')
    expect(freed()).toBe(0)
    await clock.advance('6m')
    expect(freed()).toBe(1)
    expect(hw.stats().expiryPaused).toBe(false)
  })

  it('does not delete an empty stream', async () => {
    const clock = testClock()
    const { hw } = await opened(testStorage(), clock)
    await hw.basin('basin').createStream('empty', { deleteOnEmpty: { minAgeSeconds: (2 * HOUR) / 1000 } })
    await clock.advance('1m')
    clock.jump(DAY)
    await clock.advance('30m')
    expect((await hw.basin('basin').listStreams({ prefix: 'empty' })).items.length).toBe(1)
  })
})
