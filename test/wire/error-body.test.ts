import { describe, expect, it } from 'vitest'
import { ERROR_KINDS, type ErrorCode, HeadwaterError, invalid } from '../../src/model/errors.ts'
import { errorBody } from '../../src/wire/error-body.ts'

const STATUSES: [ErrorCode, number][] = [
  ['access_token_not_found', 404],
  ['authn', 401],
  ['bad_frame', 400],
  ['bad_header', 400],
  ['bad_json', 400],
  ['bad_path', 400],
  ['bad_proto', 400],
  ['bad_query', 400],
  ['basin_deletion_pending', 409],
  ['basin_not_found', 404],
  ['decryption_failed', 400],
  ['hot_server', 502],
  ['invalid', 422],
  ['not_implemented', 501],
  ['other', 500],
  ['permission_denied', 403],
  ['quota_exhausted', 403],
  ['rate_limited', 429],
  ['request_timeout', 408],
  ['resource_already_exists', 409],
  ['server_draining', 503],
  ['storage', 500],
  ['stream_deletion_pending', 409],
  ['stream_not_found', 404],
  ['transaction_conflict', 409],
  ['unavailable', 503],
  ['upstream_timeout', 504],
]

describe('errorBody', () => {
  it.each(STATUSES)('%s is %i with code and message', (code, status) => {
    expect(errorBody(new HeadwaterError(code, 'why'))).toEqual({
      status,
      text: `{"code":"${code}","message":"why"}`,
    })
  })

  it('has a row here for every code but the three without one', () => {
    expect(STATUSES.length + 3).toBe(Object.keys(ERROR_KINDS).length)
  })

  it.each([['token'], [''], ['"\n']])(
    'a fencing mismatch tells the token %j, without a code',
    (fencingToken) => {
      const { status, text } = errorBody(
        new HeadwaterError('fencing_token_mismatch', 'why', { fencingToken }),
      )
      expect(status).toBe(412)
      expect(text).toBe(`{"fencing_token_mismatch":${JSON.stringify(fencingToken)}}`)
    },
  )

  it.each([0, 7, 9_007_199_254_740_991])('a sequence mismatch tells %i, without a code', (seqNum) => {
    expect(errorBody(new HeadwaterError('seq_num_mismatch', 'why', { seqNum }))).toEqual({
      status: 412,
      text: `{"seq_num_mismatch":${seqNum}}`,
    })
  })

  it('a range that cannot be satisfied tells the tail, without a code', () => {
    const tail = { seqNum: 3, timestamp: 0 }
    expect(errorBody(new HeadwaterError('range_not_satisfiable', 'why', { tail }))).toEqual({
      status: 416,
      text: '{"tail":{"seq_num":3,"timestamp":0}}',
    })
  })

  it('tells neither the field nor the cause', () => {
    const cause = new Error('at /home/someone')
    expect(errorBody(new HeadwaterError('storage', 'the storage failed', { cause })).text).toBe(
      '{"code":"storage","message":"the storage failed"}',
    )
    expect(errorBody(invalid('why', 'age')).text).toBe('{"code":"invalid","message":"why"}')
  })

  it.each([[new Error('secret')], ['secret'], [{ status: 404, code: 'secret' }], [null], [undefined]])(
    'tells nothing of what is no HeadwaterError: %s',
    (error) => {
      expect(errorBody(error)).toEqual({ status: 500, text: '{"code":"other","message":"internal error"}' })
    },
  )

  it('knows the errors of another copy of the package', () => {
    const copy = Object.assign(new Error('why'), {
      [Symbol.for('headwater.error')]: true,
      code: 'basin_not_found',
      status: 404,
    })
    expect(errorBody(copy)).toEqual({ status: 404, text: '{"code":"basin_not_found","message":"why"}' })
  })

  it('is one line whatever the message', () => {
    const { text } = errorBody(invalid('a\nb\r"\ud800'))
    expect(text).not.toMatch(/[\r\n]/)
    expect(JSON.parse(text).message).toBe('a\nb\r"\ud800')
  })
})
