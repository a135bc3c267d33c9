import { beforeEach, describe, expect, it } from 'vitest'
import type { CatalogChange } from '../../src/storage/contract.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { basinScope } from '../../src/usage/documents.ts'
import { UsageFlush } from '../../src/usage/flush.ts'
import { testStorage, wrapped } from '../support/index.ts'
import {
  advanceTo,
  createBasin,
  DAY,
  HOUR,
  MINUTE,
  maintain,
  ofBasin,
  openUsage,
  START,
  type TestUsage,
} from './support.ts'

const READ_BYTES = 'read-throughput:read_bytes'

/**
 * The number of commits before the storage becomes unavailable. The next commit fails, whether it takes
 * effect or not.
 */
let commitsLeft: number
let takesEffect: boolean
let flush: UsageFlush
/** Another engine on the storage, which stays available. */
let other: TestUsage

beforeEach(async () => {
  commitsLeft = Number.POSITIVE_INFINITY
  const storage = testStorage()
  const failing = wrapped(storage, {}, (session) => ({
    commit: async (changes) => {
      if (commitsLeft-- > 0) return session.commit(changes)
      if (takesEffect) await session.commit(changes)
      throw new StorageFailure('io', 'unknown', { nothingWritten: !takesEffect })
    },
  }))
  other = await openUsage({ storage })
  const { clock } = other
  const session = await failing.open({ clock, onLogChanged: () => {} })
  flush = new UsageFlush({ session, clock, onBackgroundError: () => {} })
  await createBasin(other, 'basin-one')
})

/** Times in seconds since the start. */
function add(basin: string, time: number, value: number): void {
  flush.pending.add(basinScope(basin), READ_BYTES, START + time, value)
}

const run = (time: number) => flush.run(START + time - MINUTE, START + time)

async function bytesOf(basin: string, to: number): Promise<unknown> {
  return (await ofBasin(other, basin, 'read-throughput', [0, to], 'day')).read_bytes
}

describe('a commit that seems to fail', () => {
  it('counts once, even if it takes effect during the retry', async () => {
    const storage = testStorage()
    let pending: readonly CatalogChange[] | undefined
    let isUnavailable = true
    const slow = wrapped(storage, {}, (session) => ({
      commit: async (changes) => {
        if (isUnavailable) {
          pending = changes
          throw new StorageFailure('io', 'unknown', { nothingWritten: false })
        }
        if (pending !== undefined) await session.commit(pending)
        pending = undefined
        return session.commit(changes)
      },
    }))
    const test = await openUsage({ storage: slow })
    test.usage.delivered('basin-one', 100)
    await advanceTo(test, MINUTE)
    expect(test.errors).toHaveLength(1)
    isUnavailable = false
    await advanceTo(test, 2 * MINUTE)
    expect(pending).toBeUndefined()
    expect(await ofBasin(test, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: [[0, 100]] })
  })
})

describe.each([true, false])('a commit that took effect: %s, retried when its storage recovers', (isDone) => {
  beforeEach(() => {
    takesEffect = isDone
  })

  it.each([
    ['the next day, when it is still by minutes', 1],
    ['when it was rolled up to hours', 5],
    ['when it was rolled up to days', 50],
  ])('counts once: %s', async (_, days) => {
    add('basin-one', 0, 100)
    commitsLeft = 0
    await expect(run(MINUTE)).rejects.toThrow('unknown')
    other.usage.delivered('basin-one', 1)
    await advanceTo(other, days * DAY)
    await maintain(other)
    commitsLeft = Number.POSITIVE_INFINITY
    await run(days * DAY + MINUTE)
    await advanceTo(other, days * DAY + HOUR)
    await maintain(other)
    expect(await bytesOf('basin-one', DAY)).toEqual([[0, 101]])
  })

  it('counts once, as do those before and after it', async () => {
    const basins = Array.from({ length: 250 }, (_, index) => `basin-${index}`)
    for (const basin of basins) add(basin, 0, 10)
    commitsLeft = 1
    await expect(run(MINUTE)).rejects.toThrow('unknown')
    await advanceTo(other, 5 * DAY)
    await maintain(other)
    for (const basin of basins) add(basin, 5 * DAY, 1)
    commitsLeft = Number.POSITIVE_INFINITY
    await run(5 * DAY + MINUTE)
    await advanceTo(other, 5 * DAY + HOUR)
    await maintain(other)
    for (const basin of basins) {
      expect(await bytesOf(basin, 5 * DAY + 1)).toEqual([
        [0, 10],
        [5 * DAY, 1],
      ])
    }
  })

  it('is distinguished from an earlier one in the same tier', async () => {
    for (let index = 0; index < 99; index++) add(`basin-${index}`, 0, 1)
    // The first hour is stored by hour at once, the third still by minute: the 100th and the 101st document.
    add('basin-one', 0, 1)
    add('basin-one', 2 * HOUR, 10)
    commitsLeft = 1
    await expect(run(3 * DAY + 2 * HOUR)).rejects.toThrow('unknown')
    await advanceTo(other, 3 * DAY + 3 * HOUR)
    await maintain(other)
    commitsLeft = Number.POSITIVE_INFINITY
    await run(3 * DAY + 3 * HOUR)
    await advanceTo(other, 3 * DAY + 4 * HOUR)
    expect(await bytesOf('basin-one', DAY)).toEqual([[0, 11]])
  })
})
