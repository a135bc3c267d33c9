import { describe, expect, it } from 'vitest'
import { type Sequenced, type StreamState, sequence } from '../../src/core/sequence.ts'
import { type AppendConditions, appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { Cipher, TimestampingMode } from '../../src/model/config.ts'
import { fenceRecord, trimRecord } from '../../src/model/record.ts'

const NOW = 1000
const EMPTY: StreamState = { tail: { seqNum: 0, timestamp: 0 }, trimPoint: 0, fencingToken: '' }
const STREAM: StreamState = { tail: { seqNum: 7, timestamp: 900 }, trimPoint: 2, fencingToken: 'mine' }

interface Setting {
  readonly mode?: TimestampingMode
  readonly uncapped?: boolean
  readonly cipher?: Cipher | null
  readonly now?: number
}

function run(
  state: StreamState,
  records: readonly RecordInput[],
  conditions: AppendConditions = {},
  { mode = 'client-prefer', uncapped = false, cipher = null, now = NOW }: Setting = {},
) {
  return sequence(state, appendBatch(records, conditions), { timestamping: { mode, uncapped }, cipher }, now)
}

function sequenced(...args: Parameters<typeof run>): Sequenced {
  const outcome = run(...args)
  if (outcome.kind === 'refused') throw outcome.error
  if (outcome.kind === 'duplicate') throw new Error('was stored before')
  return outcome
}

function refused(...args: Parameters<typeof run>) {
  const outcome = run(...args)
  if (outcome.kind !== 'refused') throw new Error('was not refused')
  return outcome.error
}

describe('a sequenced batch', () => {
  it('gets dense sequence numbers from 0', () => {
    const { records, start, end, next } = sequenced(EMPTY, ['a', 'b', { body: 'c', headers: [['n', 'v']] }])
    expect(records).toEqual([
      { seqNum: 0, timestamp: NOW, headers: [], body: utf8('a') },
      { seqNum: 1, timestamp: NOW, headers: [], body: utf8('b') },
      { seqNum: 2, timestamp: NOW, headers: [[utf8('n'), utf8('v')]], body: utf8('c') },
    ])
    expect(start).toEqual({ seqNum: 0, timestamp: NOW })
    expect(end).toEqual({ seqNum: 3, timestamp: NOW })
    expect(next).toEqual({ ...EMPTY, tail: { seqNum: 3, timestamp: NOW } })
  })
})

describe('commands in a batch', () => {
  it('take a sequence number and a timestamp and remain in the batch unchanged', () => {
    const { records, end } = sequenced(STREAM, ['a', fenceRecord('new'), trimRecord(1)])
    expect(records.map(({ seqNum }) => seqNum)).toEqual([7, 8, 9])
    expect(records[1]).toEqual({
      seqNum: 8,
      timestamp: NOW,
      ...fenceRecord('new'),
      command: { kind: 'fence', token: 'new' },
    })
    expect(records[2]).toEqual({
      seqNum: 9,
      timestamp: NOW,
      ...trimRecord(1),
      command: { kind: 'trim', seqNum: 1 },
    })
    expect(end.seqNum).toBe(10)
  })
})

describe('the largest sequence number', () => {
  const LAST = 2 ** 32 - 1
  const MAX = Number.MAX_SAFE_INTEGER
  const from = (seqNum: number): StreamState => ({ ...EMPTY, tail: { seqNum, timestamp: 0 } })

  it.each<[string, number, RecordInput[], Cipher | null]>([
    ['the last of AES-256-GCM', LAST, ['a'], 'aes-256-gcm'],
    ['one more of AEGIS-256', LAST, ['a', 'b'], 'aegis-256'],
    ['one more without encryption', LAST, ['a', 'b'], null],
    ['a command beyond it', LAST + 1, [trimRecord(5)], 'aes-256-gcm'],
    ['a batch whose part beyond is a command', LAST, ['a', fenceRecord('x')], 'aes-256-gcm'],
    ['the very last number', MAX - 1, ['a'], null],
  ])('admits %s', (_, seqNum, records, cipher) => {
    expect(sequenced(from(seqNum), records, {}, { cipher }).end.seqNum).toBe(seqNum + records.length)
  })

  it.each<[string, number, RecordInput[], Cipher | null, string]>([
    ['one more of AES-256-GCM', LAST + 1, ['a'], 'aes-256-gcm', `${LAST}; attempted ${LAST + 1}`],
    ['a batch that reaches beyond', LAST, ['a', 'b'], 'aes-256-gcm', `${LAST}; attempted ${LAST + 1}`],
    [
      'a record behind a command',
      LAST,
      [fenceRecord('x'), 'b'],
      'aes-256-gcm',
      `${LAST}; attempted ${LAST + 1}`,
    ],
    ['a record that leaves no number for the tail', MAX, ['a'], null, `${MAX - 1}; attempted ${MAX}`],
    ['a batch that leaves none', MAX - 1, ['a', 'b'], 'aegis-256', `${MAX - 1}; attempted ${MAX}`],
    ['a command that leaves none', MAX, [fenceRecord('')], 'aes-256-gcm', `${MAX - 1}; attempted ${MAX}`],
  ])('rejects %s', (_, seqNum, records, cipher, numbers) => {
    expect(refused(from(seqNum), records, {}, { cipher })).toMatchObject({
      code: 'invalid',
      message: `max assignable sequence number is ${numbers}`,
    })
  })

  it('is checked before missing timestamps', () => {
    const setting = { cipher: 'aes-256-gcm', mode: 'client-require' } as const
    expect(refused(from(LAST + 1), ['a'], {}, setting).message).toContain('max assignable')
    expect(refused(from(LAST), ['a', 'b'], {}, setting).message).toContain('timestamp was required')
  })
})
