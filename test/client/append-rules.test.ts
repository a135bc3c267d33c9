import { describe, expect, it } from 'vitest'
import { safeguardOf, verdictOn } from '../../adapters/client/append.ts'
import { type ErrorCode, HeadwaterError } from '../../src/index.ts'

const PRODUCER = { producer: { id: 'p', epoch: 0, seq: 0 }, matchSeqNum: undefined }
const CONDITION = { producer: undefined, matchSeqNum: 5 }
const NEITHER = { producer: undefined, matchSeqNum: undefined }

it.each([
  ['with a producer', PRODUCER, 'producer'],
  ['with `matchSeqNum`', CONDITION, 'condition'],
  ['with both', { ...PRODUCER, matchSeqNum: 5 }, 'producer'],
  ['with neither', NEITHER, undefined],
] as const)('what makes a batch %s safe to send again', (_, batch, safeguard) => {
  expect(safeguardOf(batch)).toBe(safeguard)
})

describe('a batch that was sent more than once, whose last attempt fails,', () => {
  const errorOf = (code: ErrorCode, details = {}) => new HeadwaterError(code, 'failed', details)
  const unavailable = errorOf('unavailable', { mayHaveEffects: true })

  it.each([
    ['of a producer', 'unknown', PRODUCER, unavailable],
    ['of a producer', 'unknown', PRODUCER, errorOf('rate_limited')],
    ['of a producer', 'unknown', PRODUCER, errorOf('authn')],
    ['of a producer', 'unknown', PRODUCER, errorOf('permission_denied')],
    ['of a producer', 'unknown', PRODUCER, errorOf('producer_fenced')],
    ['of a producer', 'rejected', PRODUCER, errorOf('seq_num_mismatch')],
    ['of a producer', 'rejected', PRODUCER, errorOf('stream_not_found')],
    ['with a condition', 'unknown', CONDITION, unavailable],
    ['with a condition', 'unknown', CONDITION, errorOf('permission_denied')],
    ['with a condition', 'unknown', CONDITION, errorOf('stream_not_found')],
    ['with a condition', 'rejected', CONDITION, errorOf('seq_num_mismatch', { seqNum: 5 })],
    ['with a condition', 'look', CONDITION, errorOf('seq_num_mismatch', { seqNum: 6 })],
    ['with a condition', 'look', CONDITION, errorOf('fencing_token_mismatch')],
    ['with neither', 'unknown', NEITHER, unavailable],
    ['with neither', 'rejected', NEITHER, errorOf('rate_limited')],
  ] as const)('%s: %s', (_, verdict, batch, error) => {
    expect(verdictOn(batch, error)).toBe(verdict)
  })
})
