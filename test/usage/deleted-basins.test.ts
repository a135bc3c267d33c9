import { beforeEach, describe, expect, it } from 'vitest'
import { open } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { testClock, testStorage } from '../support/index.ts'
import {
  advanceTo,
  append,
  createBasin,
  createStream,
  DAY,
  deleteStream,
  HOUR,
  maintain,
  ofBasin,
  openUsage,
  START,
  type TestUsage,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }

let test: TestUsage

/** A basin that held 100 bytes in the first two hours and was deleted in the third. */
beforeEach(async () => {
  test = await openUsage()
  await createBasin(test, 'basin-one')
  await createStream(test, A)
  await append(test, A, 100)
  for (const hour of [1, 2]) {
    await advanceTo(test, hour * HOUR + 5)
    await maintain(test)
  }
  await deleteStream(test, A)
  await test.session.commit([{ kind: 'delete', collection: 'basins', key: 'basin-one' }])
})

async function storageOf(range: readonly [number, number]) {
  return (await ofBasin(test, 'basin-one', 'storage', range)).metered_size
}

describe('the storage gauge of a deleted basin', () => {
  it('drops to zero in the hour of the deletion', async () => {
    test.usage.basinDeleted('basin-one')
    await advanceTo(test, 6 * HOUR)
    expect(await storageOf([0, 6 * HOUR])).toEqual([
      [0, 100],
      [HOUR, 100],
      [2 * HOUR, 0],
    ])
  })

  it.each(['reported', 'not reported'])(
    'does not continue in the next basin of the name: deletion %s',
    async (how) => {
      if (how === 'reported') test.usage.basinDeleted('basin-one')
      await advanceTo(test, 8 * HOUR + 10)
      await createBasin(test, 'basin-one')
      await createStream(test, A, 'another')
      await advanceTo(test, 9 * HOUR)
      await maintain(test)
      await advanceTo(test, 9 * HOUR + 30)
      expect(await storageOf([0, 9 * HOUR + 30])).toEqual([
        [8 * HOUR, 0],
        [9 * HOUR, 0],
      ])
    },
  )

  it('stays correct after it was rolled up to days', async () => {
    await advanceTo(test, 50 * HOUR)
    await createBasin(test, 'basin-one')
    await createStream(test, A, 'another')
    await append(test, { ...A, stream: 'another' }, 7)
    await advanceTo(test, 51 * HOUR)
    await maintain(test)
    await advanceTo(test, 60 * DAY)
    await maintain(test)
    expect(await storageOf([0, 4 * DAY])).toEqual([
      [2 * DAY, 7],
      [3 * DAY, 7],
    ])
  })
})

describe('a basin that an engine deletes', () => {
  it('is reported deleted when its document is removed', async () => {
    const clock = testClock()
    const hw = await open({ storage: testStorage(), usage: usageMetrics(), clock })
    await hw.basin('basin-one').stream('s').append('x'.repeat(92))
    await clock.advance('1h')
    await clock.advance('2m')
    await hw.basin('basin-one').delete()
    await clock.advance('3m')
    expect((await hw.listBasins()).items).toEqual([])
    const range = { start: START * 1000, end: (START + HOUR + 300) * 1000 }
    const [metric] = await hw.basin('basin-one').metrics({ set: 'storage', ...range })
    expect(metric?.kind === 'gauge' && metric.values).toEqual([
      [START * 1000, 100],
      [(START + HOUR) * 1000, 0],
    ])
    await hw.close()
  })
})
