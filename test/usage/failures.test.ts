import { describe, expect, it } from 'vitest'
import type { CatalogChange, StorageSession } from '../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../src/storage/errors.ts'
import { testStorage, wrapped } from '../support/index.ts'
import {
  activeBasins,
  advanceTo,
  append,
  createBasin,
  createStream,
  HOUR,
  MINUTE,
  ofAccount,
  ofBasin,
  ofStream,
  openUsage,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }

const failure = () => new StorageFailure('io', 'the disk is gone', { nothingWritten: false })

/** A storage whose calls fail on request. */
function failing() {
  const inner = testStorage()
  const control = {
    /** Called before a call. */
    before: (_call: 'commit' | 'measure' | 'list' | 'get') => {},
    /** Called after a commit. */
    committed: () => {},
    storage: wrapped(
      inner,
      {},
      (session): Partial<StorageSession> => ({
        get: async (...args) => {
          control.before('get')
          return session.get(...args)
        },
        list: async (...args) => {
          control.before('list')
          return session.list(...args)
        },
        measure: async (logIds) => {
          control.before('measure')
          return session.measure(logIds)
        },
        commit: async (changes) => {
          if (changes.every((change) => !('collection' in change) || change.collection !== 'usage')) {
            return session.commit(changes)
          }
          control.before('commit')
          await session.commit(changes)
          control.committed()
        },
      }),
    ),
  }
  return control
}

function throwing(error: () => unknown) {
  return () => {
    throw error()
  }
}

describe('a storage that rejects usage', () => {
  it('is reported once per attempt, and receives everything when it recovers', async () => {
    const control = failing()
    const test = await openUsage({ storage: control.storage })
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    control.before = throwing(failure)
    test.usage.streamCreated('basin-one')
    test.usage.delivered('basin-one', 1)
    await advanceTo(test, MINUTE)
    expect(test.errors).toHaveLength(1)
    test.usage.delivered('basin-one', 2)
    await advanceTo(test, 3 * MINUTE + 30)
    expect(test.errors).toHaveLength(3)
    expect(test.clock.pending).toBe(1)
    control.before = () => {}
    await append(test, A, 7)
    await advanceTo(test, 4 * MINUTE)
    expect(test.errors).toHaveLength(3)
    expect(test.clock.pending).toBe(0)
    const next = await openUsage(test)
    expect(await ofBasin(next, 'basin-one', 'read-throughput', [0, 4 * MINUTE])).toEqual({
      read_bytes: [
        [0, 1],
        [MINUTE, 2],
      ],
    })
    expect(await ofStream(next, A, [3 * MINUTE, 4 * MINUTE])).toEqual([[3 * MINUTE, 7]])
    expect(await activeBasins(next, [0, 1])).toEqual(['basin-one'])
  })

  it('counts nothing twice when commits succeed but seem to fail', async () => {
    const control = failing()
    const test = await openUsage({ storage: control.storage })
    control.committed = throwing(failure)
    // More documents than fit into one commit.
    const basins = Array.from({ length: 120 }, (_, index) => `basin-${index}`)
    for (const basin of basins) test.usage.delivered(basin, 10)
    await advanceTo(test, MINUTE)
    for (const basin of basins) test.usage.delivered(basin, 1)
    await advanceTo(test, 10 * MINUTE)
    expect(test.errors.length).toBeGreaterThan(1)
    control.committed = () => {}
    await advanceTo(test, 11 * MINUTE)
    for (const basin of basins) {
      expect(await ofBasin(test, basin, 'read-throughput', [0, 1], 'hour')).toEqual({ read_bytes: [[0, 11]] })
    }
  })

  it('counts a commit once that takes effect during its repetition', async () => {
    const storage = testStorage()
    let unknown: readonly CatalogChange[] | undefined
    let isUnavailable = true
    const slow = wrapped(storage, {}, (session) => ({
      commit: async (changes) => {
        if (isUnavailable) {
          unknown = changes
          throw failure()
        }
        if (unknown !== undefined) await session.commit(unknown)
        unknown = undefined
        return session.commit(changes)
      },
    }))
    const test = await openUsage({ storage: slow })
    test.usage.delivered('basin-one', 100)
    await advanceTo(test, MINUTE)
    expect(test.errors).toHaveLength(1)
    isUnavailable = false
    await advanceTo(test, 2 * MINUTE)
    expect(unknown).toBeUndefined()
    expect(await ofBasin(test, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: [[0, 100]] })
  })

  it('a failure at close is reported', async () => {
    const control = failing()
    const test = await openUsage({ storage: control.storage })
    test.usage.delivered('basin-one', 1)
    control.before = throwing(failure)
    await test.usage.close()
    expect(test.errors).toHaveLength(1)
    expect(test.clock.pending).toBe(0)
  })

  it('reports and retries when another engine always commits first', async () => {
    const control = failing()
    const test = await openUsage({ storage: control.storage })
    test.usage.delivered('basin-one', 1)
    control.before = (call) => {
      if (call === 'commit') throw new StorageConflict('another commit was faster')
    }
    await advanceTo(test, MINUTE)
    expect(test.errors).toMatchObject([{ code: 'transaction_conflict' }])
    control.before = () => {}
    await advanceTo(test, 2 * MINUTE)
    expect(await ofBasin(test, 'basin-one', 'read-throughput', [0, 1])).toEqual({ read_bytes: [[0, 1]] })
  })

  it('stores other usage when logs cannot be measured, and measures them later', async () => {
    const control = failing()
    const test = await openUsage({ storage: control.storage })
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    await append(test, A, 5)
    control.before = (call) => {
      if (call === 'measure') throw failure()
    }
    await advanceTo(test, MINUTE)
    expect(test.errors).toHaveLength(1)
    control.before = () => {}
    await advanceTo(test, 2 * MINUTE)
    expect(await ofStream(test, A, [MINUTE, MINUTE])).toEqual([[MINUTE, 5]])
  })
})

describe('a query whose storage fails', () => {
  it.each(['commit', 'get', 'measure'] as const)('rejects with `storage`: %s', async (failingCall) => {
    const control = failing()
    const test = await openUsage({ storage: control.storage })
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    await append(test, A, 1)
    control.before = (call) => {
      if (call === failingCall) throw failure()
    }
    await expect(ofStream(test, A, [0, 1])).rejects.toMatchObject({ code: 'storage' })
    control.before = () => {}
    expect(await ofStream(test, A, [0, 1])).toEqual([[0, 1]])
    // Logs that cannot be measured are reported here only.
    expect(test.errors).toHaveLength(failingCall === 'measure' ? 1 : 0)
  })

  it('keeps the usage that the query tried to store', async () => {
    const control = failing()
    const test = await openUsage({ storage: control.storage })
    test.usage.operation('list-basins', undefined)
    control.before = throwing(failure)
    await expect(ofAccount(test, 'account-ops', [0, 1])).rejects.toMatchObject({ code: 'storage' })
    expect(test.clock.pending).toBe(1)
    control.before = () => {}
    await advanceTo(test, MINUTE)
    expect(await ofAccount(test, 'account-ops', [0, 1])).toEqual({ 'list-basins': [[0, 1]] })
  })
})

describe('maintenance that fails', () => {
  it('begins the work of the hour again', async () => {
    const control = failing()
    const test = await openUsage({ storage: control.storage })
    for (const basin of ['basin-one', 'basin-two']) {
      await createBasin(test, basin)
      await createStream(test, { basin, stream: `${basin}-stream` })
      await append(test, { basin, stream: `${basin}-stream` }, 5)
    }
    await advanceTo(test, HOUR)
    let calls = 0
    control.before = () => {
      if (++calls % 7 === 0) throw failure()
    }
    let failures = 0
    const attempt = () => test.usage.maintain().catch(() => ++failures > 0)
    for (let attempts = 0; attempts < 100 && (await attempt()); attempts++);
    control.before = () => {}
    expect(failures).toBeGreaterThan(1)
    // Both were measured once.
    await advanceTo(test, HOUR + 1)
    expect(await ofBasin(test, 'basin-one', 'storage', [0, 1])).toEqual({ metered_size: [[0, 5]] })
    expect(await ofBasin(test, 'basin-two', 'storage', [0, 1])).toEqual({ metered_size: [[0, 5]] })
  })
})
