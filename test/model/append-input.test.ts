import { describe, expect, it } from 'vitest'
import { appendBatch, appendRecord, type RecordInput } from '../../src/model/append-input.ts'
import { EMPTY_BYTES, utf8 } from '../../src/model/bytes.ts'
import { INTEGER_MAX, MIB } from '../../src/model/limits.ts'
import { assertInteger } from '../../src/model/validation.ts'
import { invalidMessage, rejection } from './rejection.ts'

const NO_RECORDS = 'record batch must not be empty'
const TOO_MANY = 'record batch must not exceed 1000 records'
const TOO_LARGE = 'record batch must not exceed a metered size of 1 MiB'
const RECORD_TOO_LARGE = 'record must have metered size less than 1 MiB'
const EMPTY_NAME = 'invalid header: empty name'
const UNKNOWN_COMMAND = 'unknown command'
const NO_TIMESTAMP = '`timestamp` must be an integer from 0 to 9007199254740991'

/** A header as an app may give it. */
type Header = readonly [name: string | Uint8Array, value: string | Uint8Array]

const many = (count: number): RecordInput[] => new Array<RecordInput>(count).fill('')
/** Returns a record of this metered size. */
const sized = (meteredBytes: number): Uint8Array => new Uint8Array(meteredBytes - 8)
/** A record with these headers. */
const headed = (...headers: Header[]) => ({ headers })
const badCommand = headed(['', 'nonsense'])

/** The name and the outcome are the first columns, so that titles do not contain the input. */
function outcomes<Input>(
  rows: readonly (readonly [name: string, input: Input, message: string | undefined])[],
) {
  return rows.map(([name, input, message]) => [name, message ?? 'valid', input, message] as const)
}

describe('a record', () => {
  it.each<[string, RecordInput, object]>([
    ['text', 'é', { headers: [], body: utf8('é'), meteredBytes: 10, timestamp: undefined }],
    ['bytes', Uint8Array.of(0xff), { headers: [], body: Uint8Array.of(0xff), meteredBytes: 9 }],
    ['no bytes', { body: '' }, { headers: [], body: EMPTY_BYTES, meteredBytes: 8, command: undefined }],
    [
      'everything',
      { body: 'b', headers: [['n', 'v']], timestamp: 0 },
      {
        headers: [[utf8('n'), utf8('v')]],
        body: utf8('b'),
        meteredBytes: 13,
        timestamp: 0,
        command: undefined,
      },
    ],
    [
      'headers of bytes, repeated, with empty values',
      headed([utf8('n'), EMPTY_BYTES], ['n', '']),
      { headers: Array(2).fill([utf8('n'), EMPTY_BYTES]), meteredBytes: 14 },
    ],
    [
      'a fence command',
      { headers: [['', 'fence']], body: 'token' },
      {
        headers: [[EMPTY_BYTES, utf8('fence')]],
        meteredBytes: 20,
        command: { kind: 'fence', token: 'token' },
      },
    ],
    [
      'a trim command',
      { headers: [[EMPTY_BYTES, utf8('trim')]], body: Uint8Array.of(0, 0, 0, 0, 0, 0, 1, 0) },
      { meteredBytes: 22, command: { kind: 'trim', seqNum: 256 } },
    ],
    [
      'a named header with the value of a command',
      { headers: [['x', 'trim']], body: '' },
      { command: undefined },
    ],
  ])('of %s', (_, input, expected) => {
    expect(appendRecord(input)).toMatchObject(expected)
  })

  it.each(
    outcomes<RecordInput>([
      ['of exactly 1 MiB', sized(MIB), undefined],
      ['of 1 MiB and a byte', sized(MIB + 1), RECORD_TOO_LARGE],
      ['of 1 MiB and a byte in headers', headed(['n', new Uint8Array(MIB - 10)]), RECORD_TOO_LARGE],
      ['of exactly 1 MiB in headers', headed(['n', new Uint8Array(MIB - 11)]), undefined],
      ['with one nameless header', badCommand, UNKNOWN_COMMAND],
      ['with a nameless header first', headed(['', 'fence'], ['n', 'v']), EMPTY_NAME],
      ['with a nameless header last', headed(['n', 'v'], ['', 'fence']), EMPTY_NAME],
      ['with two nameless headers', headed(['', 'fence'], ['', 'fence']), EMPTY_NAME],
      [
        'with a nameless header and too many bytes',
        { ...headed(['', ''], ['n', '']), body: sized(MIB) },
        EMPTY_NAME,
      ],
      ['with a timestamp of 0', { timestamp: 0 }, undefined],
      ['with the largest timestamp', { timestamp: INTEGER_MAX }, undefined],
      ['with a timestamp of 2^53', { timestamp: 2 ** 53 }, NO_TIMESTAMP],
      ['with a negative timestamp', { timestamp: -1 }, NO_TIMESTAMP],
      ['with half a timestamp', { timestamp: 0.5 }, NO_TIMESTAMP],
      [
        'whose body is neither text nor bytes',
        { body: 5 as unknown as string },
        '`body` must be a string or a Uint8Array',
      ],
    ]),
  )('%s: %s', (_name, _outcome, input, message) => {
    expect(invalidMessage(() => appendRecord(input))).toBe(message)
  })
})

describe('a batch', () => {
  it.each(
    outcomes<RecordInput[]>([
      ['without records', [], NO_RECORDS],
      ['of one record', many(1), undefined],
      ['of 1,000 records', many(1000), undefined],
      ['of 1,001 records', many(1001), TOO_MANY],
      ['of 100,000 records', many(100_000), TOO_MANY],
      ['of exactly 1 MiB', [sized(MIB / 2), sized(MIB / 2)], undefined],
      ['of 1 MiB and a byte', [sized(MIB / 2), sized(MIB / 2 + 1)], TOO_LARGE],
      ['of one record of exactly 1 MiB', [sized(MIB)], undefined],
      ['of two records of 1 MiB', [sized(MIB), sized(MIB)], TOO_LARGE],
      // Records are checked first, in order, then the count, then the size.
      ['with a bad command after a record that is too large', [sized(MIB + 1), badCommand], RECORD_TOO_LARGE],
      ['with a record that is too large after a bad command', [badCommand, sized(MIB + 1)], UNKNOWN_COMMAND],
      ['of 1,001 records with a bad command as the last', [...many(1000), badCommand], UNKNOWN_COMMAND],
      ['of 1,001 records that are too large together', many(1001).fill(sized(2000)), TOO_MANY],
      [
        'that is too large, with a bad command as the last',
        [sized(MIB), sized(MIB), badCommand],
        UNKNOWN_COMMAND,
      ],
    ]),
  )('%s: %s', (_name, _outcome, inputs, message) => {
    expect(invalidMessage(() => appendBatch(inputs))).toBe(message)
  })

  it('contains the records in order and adds up their sizes', () => {
    const batch = appendBatch(['a', { headers: [['', 'fence']], body: 'b' }, 'ccc'])
    expect(batch.records.map(({ body }) => body)).toEqual([utf8('a'), utf8('b'), utf8('ccc')])
    expect(batch.meteredBytes).toBe(9 + 16 + 11)
    expect(batch).toMatchObject({ fencingToken: undefined, matchSeqNum: undefined })
  })

  it('keeps its conditions, including the empty token and number 0', () => {
    expect(appendBatch(['a'], { fencingToken: '', matchSeqNum: 0 })).toMatchObject({
      fencingToken: '',
      matchSeqNum: 0,
    })
  })

  it.each([
    [{ fencingToken: 'a'.repeat(36) }, undefined],
    [{ fencingToken: 'a'.repeat(37) }, 'fencing token must not exceed 36 bytes in length'],
    [{ matchSeqNum: INTEGER_MAX }, undefined],
    [{ matchSeqNum: 2 ** 53 }, '`matchSeqNum` must be an integer from 0 to 9007199254740991'],
    [{ matchSeqNum: -1 }, '`matchSeqNum` must be an integer from 0 to 9007199254740991'],
    [{ matchSeqNum: 1.5 }, '`matchSeqNum` must be an integer from 0 to 9007199254740991'],
    [{ matchSeqNum: Number.NaN }, '`matchSeqNum` must be an integer from 0 to 9007199254740991'],
  ])('with the conditions %j: %s', (conditions, message) => {
    expect(invalidMessage(() => appendBatch(['a'], conditions))).toBe(message)
  })

  it('names the invalid field', () => {
    expect(rejection(() => appendBatch([]))).toMatchObject({ code: 'invalid', status: 422, field: 'records' })
    expect(rejection(() => assertInteger(-1, 'age'))).toMatchObject({ code: 'invalid', field: 'age' })
  })
})
