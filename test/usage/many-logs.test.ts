import { describe, expect, it } from 'vitest'
import { StorageFailure } from '../../src/storage/errors.ts'
import { testStorage, wrapped } from '../support/index.ts'
import { advanceTo, createBasin, MINUTE, ofBasin, openUsage, recordAppend, usageKeys } from './support.ts'

/** More than are kept by minute if a storage fails. */
const LOGS = 100_001

describe('more changed logs than values are kept in memory', () => {
  it('keep their resolution if the storage accepts them', async () => {
    let state: 'away' | 'well' = 'away'
    const storage = wrapped(testStorage(), {}, (session) => ({
      measure: async (logIds) => logIds.map(() => 1),
      commit: async (changes) => {
        if (state === 'away') throw new StorageFailure('io', 'away', { nothingWritten: true })
        return session.commit(changes)
      },
    }))
    const test = await openUsage({ storage })
    for (let i = 0; i < LOGS; i++) recordAppend(test, { basin: 'basin-one', stream: `log-${i}` }, 1, test)
    await advanceTo(test, MINUTE)
    expect(test.errors).toHaveLength(1)
    state = 'well'
    await createBasin(test, 'basin-one')
    await advanceTo(test, 2 * MINUTE)
    expect(test.errors).toHaveLength(1)
    const { standard } = await ofBasin(test, 'basin-one', 'append-throughput', [0, 2 * MINUTE], 'minute')
    expect(standard).toEqual([[0, LOGS]])
    const logs = (await usageKeys(test)).filter((key) => key.includes('log\0'))
    expect(logs).toHaveLength(LOGS)
  })
})
