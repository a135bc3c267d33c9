import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Engine, open } from '../../../src/index.ts'
import { testClock, testStorage } from '../../support/index.ts'

// The code of creations takes many turns to load: for an engine and, where the tests run through one, for a
// client.
const { lateModule } = vi.hoisted(() => ({
  lateModule: async (importOriginal: () => Promise<object>) => {
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve))
    return importOriginal()
  },
}))
vi.mock('../../../src/engine/service/control.ts', (importOriginal) => lateModule(importOriginal))
vi.mock('../../../adapters/client/control.ts', (importOriginal) => lateModule(importOriginal))

let hw: Engine
afterEach(() => hw.close())

// Not `openEngine`, which creates streams.
const openNew = () => open({ storage: testStorage(), clock: testClock() })

const EXPIRING = { retentionPolicy: { ageSeconds: 99 } } as const

describe('creations that are not awaited', () => {
  // Only the first test of the file loads the code.
  it('come before later appends and sessions while their code is loaded', async () => {
    hw = await openNew()
    const basin = hw.basin('other')
    await basin.stream('first').append('x')
    const creations = [
      basin.createStream('created', EXPIRING),
      basin.ensureStream('ensured', EXPIRING),
      basin.createStream('in-session', EXPIRING),
      hw.createBasin('new-basin', { defaultStreamConfig: EXPIRING }),
    ]
    const streams = [
      ...['created', 'ensured', 'in-session'].map((name) => basin.stream(name)),
      hw.basin('new-basin').stream('s'),
    ]
    const appends = streams.map(async (stream) => {
      if (stream.name !== 'in-session') return stream.append('a')
      await using session = await stream.appendSession()
      return (await session.submit('a')).ack()
    })
    expect((await Promise.all(creations)).map(({ result }) => result)).toEqual(Array(4).fill('created'))
    expect((await Promise.all(appends)).map(({ start }) => start.seqNum)).toEqual([0, 0, 0, 0])
    for (const stream of streams) expect(await stream.config()).toMatchObject(EXPIRING)
  })

  it('do not fail later appends when they fail', async () => {
    hw = await openNew()
    const basin = hw.basin('other')
    const creating = basin.createStream('new', { retentionPolicy: { ageSeconds: -1 } })
    const [failed, appended] = await Promise.allSettled([creating, basin.stream('new').append('a')])
    expect([failed.status, appended.status]).toEqual(['rejected', 'fulfilled'])
  })
})
