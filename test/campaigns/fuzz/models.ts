import fc from 'fast-check'
import { utf8 } from '../../../src/model/bytes.ts'
import type { Header, SequencedRecord } from '../../../src/model/record.ts'

/** Models shared by several decoders. */

const EDGES = [0, 1, 127, 128, 16_384, 2 ** 28, 2 ** 31, 2 ** 32 - 1, 2 ** 49, 2 ** 53 - 2, 2 ** 53 - 1]

/** An integer from 0 to 2^53 - 1. */
export const integer = fc.oneof(fc.maxSafeNat(), fc.nat(1000), fc.constantFrom(...EDGES))

/** An integer small enough for sums. */
export const smallInteger = fc.oneof(fc.nat(1000), fc.nat(2 ** 40))

export const text = fc.string({ unit: 'grapheme', maxLength: 20 })

export const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 12 }),
  text.map(utf8),
  fc.constantFrom(0, 127, 128, 300).map((length) => new Uint8Array(length).fill(length)),
)

const name = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 8 }),
  text.map((tail) => utf8(`n${tail}`)),
)
const trimPoint = fc.uint8Array({ minLength: 8, maxLength: 8 })

/** Headers and body of a valid record, including commands. */
const content: fc.Arbitrary<{ headers: Header[]; body: Uint8Array }> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ headers: fc.array(fc.tuple(name, bytes), { maxLength: 3 }), body: bytes }),
  },
  { weight: 1, arbitrary: trimPoint.map((body) => ({ headers: [command('trim')], body })) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('', 'token')
      .map((body) => ({ headers: [command('fence')], body: utf8(body) })),
  },
)

function command(operation: string): Header {
  return [new Uint8Array(0), utf8(operation)]
}

export const record: fc.Arbitrary<SequencedRecord> = fc
  .tuple(integer, integer, content)
  .map(([seqNum, timestamp, { headers, body }]) => ({ seqNum, timestamp, headers, body }))

/** Records as in a stream: dense sequence numbers and ascending timestamps. */
export const sequence: fc.Arbitrary<SequencedRecord[]> = fc
  .tuple(smallInteger, smallInteger, fc.array(fc.tuple(content, fc.nat(9)), { minLength: 1, maxLength: 5 }))
  .map(([first, start, contents]) => {
    let timestamp = start
    return contents.map(([{ headers, body }, later], i) => {
      timestamp += later
      return { seqNum: first + i, timestamp, headers, body }
    })
  })

export const basinName = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{6,20}[a-z0-9])$/)

export const streamName = fc
  .oneof(text, fc.constantFrom('a/b', 'ünïcode', '...', ' '))
  .map((tail) => (tail === '' || tail === '.' || tail === '..' ? 'stream' : tail))

export const fencingToken = fc.string({ unit: 'grapheme', maxLength: 4 })

export const time = fc.nat(Date.UTC(9999, 11, 31)).map((ms) => new Date(ms))

export function optional<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> {
  return fc.option(value, { nil: undefined })
}

/** Objects of which any member may be absent. */
export function partial<Members extends object>(
  members: {
    readonly [Name in keyof Members]: fc.Arbitrary<Members[Name]>
  },
): fc.Arbitrary<Partial<Members>> {
  return fc.record(members, { requiredKeys: [] }) as unknown as fc.Arbitrary<Partial<Members>>
}
