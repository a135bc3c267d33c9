import { beforeEach, describe, expect, it } from 'vitest'
import { StorageFailure } from '../../src/storage/errors.ts'
import { testStorage, wrapped } from '../support/index.ts'
import {
  activeBasins,
  advanceTo,
  append,
  createBasin,
  createStream,
  HOUR,
  maintain,
  ofBasin,
  openUsage,
  type TestUsage,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }

let test: TestUsage
let isAway: boolean

beforeEach(async () => {
  isAway = false
  const storage = wrapped(testStorage(), {}, (session) => ({
    list: async (collection, range) => {
      if (isAway) throw new StorageFailure('io', 'away', { nothingWritten: true })
      return session.list(collection, range)
    },
  }))
  test = await openUsage({ storage })
  await createBasin(test, 'basin-one')
  await createStream(test, A)
  await append(test, A, 100)
})

async function storageOf(range: readonly [number, number], of = test) {
  return (await ofBasin(of, 'basin-one', 'storage', range)).metered_size
}

describe('the past hour', () => {
  it('has the value of its end', async () => {
    await advanceTo(test, HOUR)
    await maintain(test)
    await append(test, A, 11)
    await advanceTo(test, 2 * HOUR + 10)
    expect(await storageOf([0, 2 * HOUR + 10])).toEqual([
      [0, 100],
      [HOUR, 111],
      [2 * HOUR, 111],
    ])
  })

  it('may be the first of a basin', async () => {
    await advanceTo(test, HOUR + 10)
    expect(await storageOf([0, HOUR])).toEqual([[0, 100]])
  })

  it('keeps its value in later queries', async () => {
    await advanceTo(test, HOUR + 10)
    await storageOf([0, HOUR])
    await append(test, A, 900)
    await advanceTo(test, 2 * HOUR - 10)
    expect(await storageOf([0, HOUR])).toEqual([[0, 100]])
  })
})

describe('a late measurement', () => {
  it('counts for the current hour, not for the one before', async () => {
    await advanceTo(test, HOUR)
    await maintain(test)
    await advanceTo(test, 3 * HOUR + 1_800)
    await append(test, A, 900)
    await maintain(test)
    await advanceTo(test, 4 * HOUR)
    expect(await storageOf([0, 4 * HOUR])).toEqual([
      [0, 100],
      [HOUR, 100],
      [2 * HOUR, 100],
      [3 * HOUR, 1_000],
    ])
  })

  it('does not count for the hour in which it began', async () => {
    await advanceTo(test, HOUR + 1)
    while (!(await test.usage.maintain()));
    isAway = true
    await expect(test.usage.maintain()).rejects.toMatchObject({ cause: { message: 'away' } })
    await advanceTo(test, 3 * HOUR + 1)
    await append(test, A, 900)
    await advanceTo(test, 6 * HOUR + 1)
    isAway = false
    await maintain(test)
    expect(await storageOf([0, 6 * HOUR])).toEqual([[5 * HOUR, 1_000]])
  })

  it('is repeated for the hour in which it continues', async () => {
    await createBasin(test, 'basin-two')
    await advanceTo(test, HOUR + 1)
    while (!(await test.usage.maintain()));
    // One basin is measured, the other is not.
    await test.usage.maintain()
    await append(test, A, 900)
    await advanceTo(test, 3 * HOUR)
    await maintain(test)
    expect(await storageOf([0, 3 * HOUR])).toEqual([
      [0, 100],
      [HOUR, 100],
      [2 * HOUR, 1_000],
    ])
  })

  it('does not count for an hour that ends meanwhile', async () => {
    const { measure } = test.session
    test.session.measure = async (logIds) => {
      await advanceTo(test, 2 * HOUR + 1_800)
      await append(test, A, 900)
      return measure.call(test.session, logIds)
    }
    await advanceTo(test, HOUR)
    await maintain(test)
    expect(await storageOf([HOUR, 2 * HOUR])).toEqual([])
  })
})

describe('an hour that an engine has claimed', () => {
  let other: TestUsage

  beforeEach(async () => {
    await createBasin(test, 'basin-two')
    await createStream(test, { basin: 'basin-two', stream: 'b' })
    other = await openUsage(test)
    await advanceTo(test, HOUR + 1)
    // It begins and then stops without a trace.
    expect(await test.usage.maintain()).toBe(true)
  })

  it('is reserved for two minutes', async () => {
    expect(await other.usage.maintain()).toBe(false)
    await advanceTo(test, HOUR + 120)
    expect(await other.usage.maintain()).toBe(false)
    await advanceTo(test, HOUR + 121)
    expect(await other.usage.maintain()).toBe(true)
    await maintain(other)
    expect(await storageOf([0, HOUR], other)).toEqual([[0, 100]])
  })

  it('is not used by a query', async () => {
    await test.usage.close()
    expect(await activeBasins(other, [HOUR, HOUR + 60])).toEqual(['basin-one', 'basin-two'])
    expect(await storageOf([0, HOUR], other)).toEqual([[0, 100]])
  })

  it('stays reserved while the measurement continues', async () => {
    for (let index = 0; index < 20; index++) await createBasin(test, `basin-${index}`)
    for (let seconds = 30; await test.usage.maintain(); seconds += 30) {
      await advanceTo(test, HOUR + 1 + seconds)
      expect(await other.usage.maintain()).toBe(false)
    }
    await maintain(other)
    expect(await storageOf([0, HOUR], other)).toEqual([[0, 100]])
  })

  it('is complete if another engine finished first', async () => {
    await activeBasins(other, [HOUR, HOUR + 60])
    await advanceTo(test, HOUR + 61)
    test.session.list = () => Promise.reject(new Error('it looks at basins'))
    // Nothing is due in the roll-up.
    expect(await test.usage.maintain()).toBe(false)
  })

  it('can be claimed again by the same engine', async () => {
    const uncertain = await openUsage(test)
    await advanceTo(test, 2 * HOUR + 1)
    const { commit } = uncertain.session
    uncertain.session.commit = async (changes) => {
      await commit.call(uncertain.session, changes)
      throw new StorageFailure('io', 'unknown', { nothingWritten: false })
    }
    await expect(maintain(uncertain)).rejects.toThrow('unknown')
    uncertain.session.commit = commit
    expect(await uncertain.usage.maintain()).toBe(true)
    await maintain(uncertain)
    expect(await storageOf([HOUR, 2 * HOUR], uncertain)).toEqual([[HOUR, 100]])
  })
})
