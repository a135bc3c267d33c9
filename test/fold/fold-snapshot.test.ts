import fc from 'fast-check'
import { expect, test } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { type SequencedRecord, trimRecord } from '../../src/model/record.ts'
import { EMPTY_SCAN, type FoldSnapshot, recordsOfSnapshot, scanSnapshots } from '../../src/sync/fold.ts'

const snapshot = (text: string, position = text.length): FoldSnapshot => ({
  source: 'a-log',
  version: 1,
  position,
  last: { seqNum: position - 1, timestamp: 7 },
  isJson: true,
  state: utf8(text),
})

/** The records as a read returns them. */
function stored(inputs: readonly unknown[], from = 0): SequencedRecord[] {
  return inputs.map((input, index) => {
    const { headers, body } = input as {
      headers: [string | Uint8Array, string | Uint8Array][]
      body: Uint8Array
    }
    const bytes = (part: string | Uint8Array) => (typeof part === 'string' ? utf8(part) : part)
    return {
      seqNum: from + index,
      timestamp: 0,
      headers: headers.map(([name, value]) => [bytes(name), bytes(value)] as const),
      body,
    }
  })
}

const textsOf = (records: readonly SequencedRecord[]) =>
  scanSnapshots(EMPTY_SCAN, records).complete.map(({ state }) => new TextDecoder().decode(state))

test('a snapshot is read back, in one part or many', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), fc.integer({ min: 1, max: 20 }), (state, partBytes) => {
      const given = { ...snapshot('x'), state }
      const records = recordsOfSnapshot(given, partBytes)
      expect(records).toHaveLength(Math.max(1, Math.ceil(state.length / partBytes)))
      const { complete, parts, end } = scanSnapshots(EMPTY_SCAN, stored(records, 9))
      expect(complete).toEqual([given])
      expect(parts).toEqual([])
      expect(end).toBe(9 + records.length)
    }),
  )
})

test('two parts of a large state and a trim fit in a batch', () => {
  const [first, second, third] = stored(
    recordsOfSnapshot({ ...snapshot('x'), state: new Uint8Array(1_000_001) }),
  )
  expect(first!.body.length + second!.body.length).toBeLessThan(1_048_576 - 1_000)
  expect(third!.body).toHaveLength(1)
})

test('the newest complete snapshot comes first, and the one before it second', () => {
  const records = ['a', 'bb', 'ccc'].flatMap((text) => recordsOfSnapshot(snapshot(text), 1))
  expect(textsOf(stored(records))).toEqual(['ccc', 'bb'])
})

test('a trim between snapshots changes nothing', () => {
  const records = [...recordsOfSnapshot(snapshot('a')), trimRecord(0), ...recordsOfSnapshot(snapshot('bb'))]
  expect(textsOf(stored(records))).toEqual(['bb', 'a'])
})

test.each([
  ['its last part is missing', (parts: unknown[]) => parts.slice(0, -1)],
  ['its first part is missing', (parts: unknown[]) => parts.slice(1)],
  ['a part is missing', (parts: unknown[]) => parts.toSpliced(1, 1)],
  ['a part comes twice', (parts: unknown[]) => parts.toSpliced(1, 0, parts[1])],
  [
    'another record lies in between',
    (parts: unknown[]) => parts.toSpliced(1, 0, { headers: [], body: utf8('?') }),
  ],
])('a snapshot is ignored if %s', (_, damage) => {
  const damaged = damage([...recordsOfSnapshot(snapshot('damaged'), 2)])
  expect(textsOf(stored([...recordsOfSnapshot(snapshot('before')), ...damaged]))).toEqual(['before'])
  expect(textsOf(stored([...damaged, ...recordsOfSnapshot(snapshot('after'))]))).toEqual(['after'])
})

test('parts of two snapshots of the same position are not mixed', () => {
  const [one] = recordsOfSnapshot(snapshot('aaaa', 4), 2)
  const [, other] = recordsOfSnapshot(snapshot('bbbb', 4), 2)
  expect(textsOf(stored([one, other]))).toEqual([])
})

test('a snapshot is ignored if any of its bytes changed', () => {
  const [record] = stored(recordsOfSnapshot(snapshot('state')))
  const { headers, body } = record!
  const flipped = (bytes: Uint8Array, index: number) =>
    bytes.map((byte, at) => (at === index ? byte ^ 1 : byte))
  for (let index = 0; index < body.length; index++) {
    expect(textsOf([{ ...record!, body: flipped(body, index) }])).toEqual([])
  }
  const [[name, value]] = headers as [[Uint8Array, Uint8Array]]
  for (let index = 0; index < value.length; index++) {
    const changed = { ...record!, headers: [[name, flipped(value, index)] as const] }
    const { complete } = scanSnapshots(EMPTY_SCAN, [changed])
    expect(complete).toEqual([])
  }
})

test.each([
  ['no header', []],
  ['a header without JSON', [['headwater-snapshot', '{']]],
  ['another format', [['headwater-snapshot', '{"format":2}']]],
  ['a header without members', [['headwater-snapshot', '{"format":1}']]],
  ['null', [['headwater-snapshot', 'null']]],
] as const)('a record with %s is no snapshot', (_, headers) => {
  expect(textsOf(stored([{ headers, body: utf8('x') }]))).toEqual([])
})
