import { describe, expect, it } from 'vitest'
import { ERROR_KINDS, HeadwaterError, invalid } from '../../src/model/errors.ts'

/** `R` is retryable, `E` may have effects. docs/protocol.md "Error codes" has those that are on the wire. */
const TABLE = [
  ['access_token_not_found', 404, ''],
  ['append_discarded', 500, 'R'],
  ['already_appended', 409, ''],
  ['authn', 401, ''],
  ['bad_frame', 400, ''],
  ['bad_header', 400, ''],
  ['bad_json', 400, ''],
  ['bad_path', 400, ''],
  ['bad_proto', 400, ''],
  ['bad_query', 400, ''],
  ['basin_deletion_pending', 409, ''],
  ['basin_not_found', 404, ''],
  ['closed', 503, ''],
  ['decryption_failed', 400, ''],
  ['encryption_key_invalid', 400, ''],
  ['history_trimmed', 500, ''],
  ['invalid', 422, ''],
  ['other', 500, 'RE'],
  ['outbox_full', 429, 'R'],
  ['outcome_unknown', 500, 'E'],
  ['permission_denied', 403, ''],
  ['producer_fenced', 403, ''],
  ['producer_gap', 409, ''],
  ['rate_limited', 429, 'R'],
  ['reducer_failed', 500, ''],
  ['resource_already_exists', 409, ''],
  ['storage', 500, 'RE'],
  ['storage_full', 500, 'RE'],
  ['stream_deleted', 503, ''],
  ['stream_closed', 409, ''],
  ['stream_deletion_pending', 409, ''],
  ['stream_not_found', 404, ''],
  ['stream_seq_not_increasing', 409, ''],
  ['too_many_producers', 409, ''],
  ['transaction_conflict', 409, 'R'],
  ['unavailable', 503, 'RE'],
  ['undecodable_record', 400, ''],
  ['unsupported', 503, ''],
  ['fencing_token_mismatch', 412, ''],
  ['seq_num_mismatch', 412, ''],
  ['range_not_satisfiable', 416, ''],
] as const

describe('error codes', () => {
  it.each(TABLE)('%s is %d %s', (code, status, flags) => {
    const error = new HeadwaterError(code, 'why')
    expect(error).toMatchObject({
      name: 'HeadwaterError',
      message: 'why',
      code,
      status,
      retryable: flags.includes('R'),
      mayHaveEffects: flags.includes('E'),
    })
  })

  it('are exactly those of the table', () => {
    expect(Object.keys(ERROR_KINDS).sort()).toEqual(TABLE.map(([code]) => code).sort())
  })
})

describe('an error', () => {
  it('exposes its details', () => {
    const cause = new Error('below')
    const tail = { seqNum: 3, timestamp: 7 }
    const details = { field: 'seqNum', tail, fencingToken: '', seqNum: 0, cause }
    expect(new HeadwaterError('range_not_satisfiable', 'beyond', details)).toMatchObject(details)
    expect(invalid('why', 'age')).toMatchObject({
      code: 'invalid',
      status: 422,
      message: 'why',
      field: 'age',
    })
    expect(invalid('why').field).toBeUndefined()
  })

  it('has no `cause` property unless one is given', () => {
    expect('cause' in new HeadwaterError('storage', 'lost')).toBe(false)
  })

  it('is recognized by its brand, also from another copy of the package', () => {
    const copy = new Error('from a copy')
    Object.defineProperty(copy, Symbol.for('headwater.error'), { value: true })
    expect(HeadwaterError.is(copy)).toBe(true)
    expect(HeadwaterError.is(invalid('why'))).toBe(true)
    for (const other of [new Error('why'), undefined, null, 'invalid', { code: 'invalid' }]) {
      expect(HeadwaterError.is(other)).toBe(false)
    }
  })

  it('does not expose its brand as an enumerable property', () => {
    expect(Object.getOwnPropertySymbols({ ...invalid('why') })).toEqual([])
  })
})
