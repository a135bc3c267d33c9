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

const KIND = { source: 'a-log', version: 1 }

const newestOf = (records: readonly SequencedRecord[]) => {
  const { newest } = scanSnapshots(EMPTY_SCAN, records, KIND)
  return newest && new TextDecoder().decode(newest.state)
}

test('a snapshot is read back, in one part or many', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), fc.integer({ min: 1, max: 20 }), (state, partBytes) => {
      const given = { ...snapshot('x'), state }
      const records = recordsOfSnapshot(given, partBytes)
      expect(records).toHaveLength(Math.max(1, Math.ceil(state.length / partBytes)))
      const { newest, parts, end } = scanSnapshots(EMPTY_SCAN, stored(records, 9), KIND)
      expect(newest).toEqual(given)
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

test('the newest complete snapshot counts', () => {
  const records = ['a', 'bb', 'ccc'].flatMap((text) => recordsOfSnapshot(snapshot(text), 1))
  expect(newestOf(stored(records))).toBe('ccc')
  expect(newestOf(stored(records.slice(0, -1)))).toBe('bb')
})

test('a trim between snapshots changes nothing', () => {
  const records = [...recordsOfSnapshot(snapshot('a')), trimRecord(0), ...recordsOfSnapshot(snapshot('bb'))]
  expect(newestOf(stored(records))).toBe('bb')
})

test.each([
  ['version', { version: '1' }],
  ['stream', { source: 'another-log' }],
])('a snapshot of another %s is ignored', (_, other) => {
  const records = [...recordsOfSnapshot(snapshot('a')), ...recordsOfSnapshot({ ...snapshot('b'), ...other })]
  expect(newestOf(stored(records))).toBe('a')
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
  expect(newestOf(stored([...recordsOfSnapshot(snapshot('before')), ...damaged]))).toBe('before')
  expect(newestOf(stored([...damaged, ...recordsOfSnapshot(snapshot('after'))]))).toBe('after')
})

test.each([
  ['no header', []],
  ['a header without JSON', [['headwater-snapshot', '{']]],
  ['another format', [['headwater-snapshot', '{"format":2}']]],
  ['a header without members', [['headwater-snapshot', '{"format":1}']]],
  ['null', [['headwater-snapshot', 'null']]],
] as const)('a record with %s is no snapshot', (_, headers) => {
  expect(newestOf(stored([{ headers, body: utf8('x') }]))).toBeUndefined()
})
