import { describe, expect, it } from 'vitest'
import { ERROR_KINDS, type ErrorCode, HeadwaterError, invalid } from '../../src/model/errors.ts'
import { decodeError, errorBody } from '../../src/wire/errors.ts'

const IN_PROCESS_ONLY: [ErrorCode, number, string][] = [
  ['append_discarded', 500, 'other'],
  ['closed', 503, 'unavailable'],
  ['encryption_key_invalid', 400, 'bad_header'],
  ['history_trimmed', 500, 'other'],
  ['outbox_full', 429, 'rate_limited'],
  ['outcome_unknown', 500, 'other'],
  ['reducer_failed', 500, 'other'],
  ['storage_full', 500, 'storage'],
  ['storage_upgraded', 503, 'unavailable'],
  ['stream_deleted', 503, 'unavailable'],
  ['undecodable_record', 400, 'bad_json'],
]

describe('the body of an error', () => {
  it('has the code on the wire, except for some, and for those of 412 and 416', () => {
    const details = { seqNum: 0, fencingToken: '', tail: { seqNum: 0, timestamp: 0 } }
    const others = Object.keys(ERROR_KINDS).filter((code) => {
      const { status, text } = errorBody(new HeadwaterError(code as ErrorCode, 'why', details))
      expect(status).toBe(ERROR_KINDS[code as ErrorCode].status)
      return JSON.parse(text).code !== code
    })
    const bare = ['fencing_token_mismatch', 'seq_num_mismatch', 'range_not_satisfiable']
    expect(others.sort()).toEqual([...IN_PROCESS_ONLY.map(([code]) => code), ...bare].sort())
  })

  it.each([
    ['stream_closed', { seqNum: 7 }, '"seq_num":7'],
    ['producer_fenced', { producerEpoch: 0 }, '"producer_epoch":0'],
    ['producer_gap', { expectedSeq: 1, receivedSeq: 3 }, '"expected_seq":1,"received_seq":3'],
    ['already_appended', { lastSeq: 4 }, '"last_seq":4'],
    ['stream_seq_not_increasing', { streamSeq: 'é' }, '"stream_seq":"é"'],
  ] as const)('%s has its details, which a client decodes', (code, details, members) => {
    const { text } = errorBody(new HeadwaterError(code, 'why', details))
    expect(text).toBe(`{"code":"${code}","message":"why",${members}}`)
    expect(decodeError(text)).toMatchObject({ code, message: 'why', ...details })
  })

  it.each(IN_PROCESS_ONLY)(
    '%s is %i `%s`, which the protocol does not distinguish from it',
    (code, status, onWire) => {
      expect(errorBody(new HeadwaterError(code, 'why'))).toEqual({
        status,
        text: `{"code":"${onWire}","message":"why"}`,
      })
    },
  )

  it.each([['token'], [''], ['"\n']])(
    'states the token %j of a fencing mismatch, without a code',
    (fencingToken) => {
      const { status, text } = errorBody(
        new HeadwaterError('fencing_token_mismatch', 'why', { fencingToken }),
      )
      expect(status).toBe(412)
      expect(text).toBe(`{"fencing_token_mismatch":${JSON.stringify(fencingToken)}}`)
    },
  )

  it.each([0, 7, 9_007_199_254_740_991])(
    'states the number %i of a sequence mismatch, without a code',
    (seqNum) => {
      expect(errorBody(new HeadwaterError('seq_num_mismatch', 'why', { seqNum }))).toEqual({
        status: 412,
        text: `{"seq_num_mismatch":${seqNum}}`,
      })
    },
  )

  it('states the tail if a range cannot be satisfied, without a code', () => {
    const tail = { seqNum: 3, timestamp: 0 }
    expect(errorBody(new HeadwaterError('range_not_satisfiable', 'why', { tail }))).toEqual({
      status: 416,
      text: '{"tail":{"seq_num":3,"timestamp":0}}',
    })
  })

  it.each([
    ['matchSeqNum', '`match_seq_num` is wrong'],
    ['waitMs', '`wait` is wrong'],
    ['retentionPolicy.ageSeconds', '`retention_policy.age` is wrong'],
    ['timestamp', '`timestamp` is wrong'],
    ['limits.openSessions', '`limits.openSessions` is wrong'],
  ])('names the field %s as the wire does', (field, message) => {
    expect(JSON.parse(errorBody(invalid(`\`${field}\` is wrong`, field)).text).message).toBe(message)
  })

  it('keeps other names in the message', () => {
    const { text } = errorBody(new HeadwaterError('stream_not_found', 'stream `matchSeqNum` not found'))
    expect(JSON.parse(text).message).toBe('stream `matchSeqNum` not found')
  })

  it('includes neither the field nor the cause', () => {
    const cause = new Error('at /home/someone')
    expect(errorBody(new HeadwaterError('storage', 'the storage failed', { cause })).text).toBe(
      '{"code":"storage","message":"the storage failed"}',
    )
    expect(errorBody(invalid('why', 'age')).text).toBe('{"code":"invalid","message":"why"}')
  })

  it.each([[new Error('secret')], ['secret'], [{ status: 404, code: 'secret' }], [null], [undefined]])(
    'reveals nothing of errors that are not a HeadwaterError: %s',
    (error) => {
      expect(errorBody(error)).toEqual({ status: 500, text: '{"code":"other","message":"internal error"}' })
    },
  )

  it('recognizes errors of another copy of the package', () => {
    const copy = Object.assign(new Error('why'), {
      [Symbol.for('headwater.error')]: true,
      code: 'basin_not_found',
      status: 404,
    })
    expect(errorBody(copy)).toEqual({ status: 404, text: '{"code":"basin_not_found","message":"why"}' })
  })

  it('is one line for any message', () => {
    const { text } = errorBody(invalid('a\nb\r"\ud800'))
    expect(text).not.toMatch(/[\r\n]/)
    expect(JSON.parse(text).message).toBe('a\nb\r"\ud800')
  })
})

describe('an error body that a client receives', () => {
  it('is decoded with the names of the API', () => {
    expect(decodeError('{"code":"invalid","message":"`tail_offset` is wrong"}')).toMatchObject({
      code: 'invalid',
      message: '`tailOffset` is wrong',
      field: 'tailOffset',
    })
    expect(decodeError('{"seq_num_mismatch":7}')).toMatchObject({ code: 'seq_num_mismatch', seqNum: 7 })
    expect(decodeError('{"fencing_token_mismatch":""}')).toMatchObject({ fencingToken: '' })
    expect(decodeError('{"code":"later","message":"?"}')).toMatchObject({
      code: undefined,
      sentCode: 'later',
    })
    for (const text of ['', 'null', '[]', '{}', '{"seq_num_mismatch":-1}'])
      expect(decodeError(text)).toBeUndefined()
  })
})
