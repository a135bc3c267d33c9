import { expect, it } from 'vitest'
import { ERROR_KINDS, type ErrorCode, HeadwaterError } from '../../src/model/errors.ts'
import { backOffMs, mirrorOutcome } from '../../src/sync/failures.ts'

/** The outcome without and with records in the copy, of all codes that do not fail for good. */
const OUTCOMES: Partial<Record<ErrorCode, readonly [without: string, withRecords: string]>> = {
  append_discarded: ['retry', 'retry'],
  authn: ['denied', 'denied'],
  basin_deletion_pending: ['retry', 'missing'],
  basin_not_found: ['retry', 'missing'],
  closed: ['retry', 'retry'],
  other: ['retry', 'retry'],
  outbox_full: ['retry', 'retry'],
  permission_denied: ['denied', 'denied'],
  range_not_satisfiable: ['retry', 'replaced'],
  rate_limited: ['retry', 'retry'],
  server_draining: ['retry', 'retry'],
  storage: ['retry', 'retry'],
  storage_full: ['retry', 'retry'],
  stream_deleted: ['retry', 'retry'],
  stream_not_found: ['retry', 'missing'],
  transaction_conflict: ['retry', 'retry'],
  unavailable: ['retry', 'retry'],
}

it.each(Object.keys(ERROR_KINDS) as ErrorCode[])('decides what a mirror does after %s', (code) => {
  const error = new HeadwaterError(code, 'message')
  const outcomes = [mirrorOutcome(error, false), mirrorOutcome(error, true)]
  expect(outcomes).toEqual(OUTCOMES[code] ?? ['failed', 'failed'])
})

it('pauses double from half a second to half a minute, of which the half is random', () => {
  expect([1, 2, 3, 7, 8, 1000].map((failures) => backOffMs(failures, 0))).toEqual([
    250, 500, 1_000, 15_000, 15_000, 15_000,
  ])
  expect(backOffMs(1, 0.5)).toBe(375)
  expect(backOffMs(100, 0.999_999)).toBe(30_000)
})

it('pauses are longer by what the server asks for, up to ten minutes', () => {
  expect(backOffMs(1, 0, 5_000)).toBe(5_250)
  expect(backOffMs(1, 0, 86_400_000)).toBe(600_250)
})
