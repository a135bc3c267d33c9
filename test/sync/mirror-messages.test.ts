import { expect, test } from 'vitest'
import { HeadwaterError } from '../../src/index.ts'
import { decodeMessage, encodeMessage } from '../../src/sync/mirror.ts'

const stateOf = (error: unknown) => ({ kind: 'state', state: { kind: 'offline', error, nextAttemptAt: 1 } })

test('the state of a mirror is the same in other tabs', () => {
  const error = new HeadwaterError('storage', 'failed', { mayHaveEffects: false, field: 'local' })
  const state = { kind: 'offline', error, nextAttemptAt: 1 } as const
  const sent = structuredClone(encodeMessage({ kind: 'state', state }))
  expect(decodeMessage(sent)).toEqual({ kind: 'state', state })
})

test('an error with a code of a later version is another error', () => {
  const sent = stateOf({ code: 'of_a_later_version', message: 'failed', mayHaveEffects: true })
  expect(decodeMessage(sent)).toMatchObject({ state: { error: { code: 'other', message: 'failed' } } })
})
