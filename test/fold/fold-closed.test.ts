import { expect, test } from 'vitest'
import { fold } from '../../adapters/fold/index.ts'
import { outcomeOf } from '../support/engine.ts'
import { foldText, openLog, reopened, storedSnapshots, watch } from './fold-support.ts'

test('a fold keeps its value when its stream is closed', async () => {
  const { hw, log, clock } = await openLog()
  const text = foldText(log, { create: true })
  const values = watch(text)
  await text.loaded()
  const beyond = outcomeOf(text.reached(3))
  await log.append('a')
  await log.close()
  await clock.settle()
  expect(values.seen).toEqual(['', 'a ', 'complete'])
  expect(watch(text).seen).toEqual(['a ', 'complete'])
  expect([await text.loaded(), await text.reached(2)]).toEqual(['a ', 'a '])
  expect([await beyond, await outcomeOf(text.reached(3))]).toEqual(['closed', 'closed'])
  expect((await hw.stats()).openReads).toBe(0)
})

test('a fold of a stream that was closed before has its value, and stores a snapshot', async () => {
  const { hw, log } = await openLog()
  await log.append('a')
  await log.close()
  expect(await reopened(log, { snapshotEvery: 10 })).toEqual({ value: 'a ', calls: 1 })
  expect(await storedSnapshots(hw)).toMatchObject([{ position: 2 }])
  expect(await reopened(log, { snapshotEvery: 10 })).toEqual({ value: 'a ', calls: 0 })
})

test('a source that ends before it has caught up has its final value', async () => {
  const sum = fold(
    {
      async *changes() {
        yield { start: 0, confirmed: [{ seqNum: 0 }], position: 1, pending: [], isCaughtUp: false }
      },
    },
    { initial: 0, reduce: (count) => count + 1, version: 1 },
  )
  const values = watch(sum)
  expect(await sum.loaded()).toBe(1)
  expect(values.seen).toEqual([1, 'complete'])
})
