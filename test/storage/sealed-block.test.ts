import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SequencedRecord } from '../../src/model/record.ts'
import { meteredBytesOf } from '../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../src/storage/block-codec.ts'
import {
  decodeSegments,
  decodeSkeleton,
  encodePlaintext,
  encodeSegment,
  encodeSkeleton,
  joinRecords,
  type SealedSegment,
} from '../../src/storage/sealed-block.ts'

const bytes = fc.uint8Array({ maxLength: 300 })
const ordinary = fc.record({
  headers: fc.array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 200 }), bytes), { maxLength: 3 }),
  body: bytes,
})
const command = fc.record({
  headers: fc.tuple(fc.tuple(fc.constant(new Uint8Array()), bytes)),
  body: bytes,
})
const records = fc
  .array(fc.tuple(fc.oneof(ordinary, command), fc.nat(1e6)), { minLength: 1, maxLength: 20 })
  .map((contents): SequencedRecord[] =>
    contents.map(([content, timestamp], index) => ({ seqNum: index, timestamp, ...content })),
  )

function meteredBytes(all: readonly SequencedRecord[]): number {
  return all.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
}

const segment = fc.record({
  cipher: fc.constantFrom('aegis-256' as const, 'aes-256-gcm' as const),
  meteredBytes: fc.nat(0xff_ff_ff_ff),
  skeleton: bytes,
  sealed: fc.boolean(),
  ciphertext: fc.uint8Array({ minLength: 32, maxLength: 100 }),
})

function segmentOf({
  cipher,
  sealed,
  ciphertext,
  ...rest
}: typeof segment extends fc.Arbitrary<infer S> ? S : never) {
  const nonce = new Uint8Array(cipher === 'aegis-256' ? 32 : 12).fill(7)
  return { ...rest, cipher, sealed: sealed ? { nonce, ciphertext } : undefined } satisfies SealedSegment
}

describe('segments', () => {
  it('have the documented bytes', () => {
    const bytes = encodeSegment({
      cipher: 'aes-256-gcm',
      meteredBytes: 0x01_02_03,
      skeleton: new Uint8Array([0xa1, 0xa2]),
      sealed: { nonce: new Uint8Array(12).fill(0xb0), ciphertext: new Uint8Array(16).fill(0xc0) },
    })
    expect(Buffer.from(bytes).toString('hex')).toBe(
      ['07', '02', '00010203', '00000002', '0000001c', 'a1a2', 'b0'.repeat(12), 'c0'.repeat(16)].join(''),
    )
    const ofCommands = { cipher: 'aegis-256', meteredBytes: 8, skeleton: bytes, sealed: undefined } as const
    expect([...encodeSegment(ofCommands).subarray(0, 2)]).toEqual([7, 1])
    expect(decodeSegments(encodeSegment(ofCommands))[0]).toMatchObject(ofCommands)
  })

  it('form the segments of both blocks if concatenated, at any offset of a buffer', () => {
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.nat(9), (inputs, offset) => {
        const segments = inputs.map(segmentOf)
        const parts = segments.map(encodeSegment)
        const block = Buffer.concat([Buffer.alloc(offset), ...parts])
        const decoded = decodeSegments(new Uint8Array(block).subarray(offset))
        expect(decoded).toEqual(segments.map((segment, index) => ({ ...segment, data: parts[index] })))
      }),
    )
  })

  it.each<[string, Uint8Array]>([
    ['a plain block', encodeRecords([{ seqNum: 1, timestamp: 1, headers: [], body: new Uint8Array(20) }])],
    ['an unknown format', new Uint8Array([7, 3, ...new Uint8Array(12)])],
    ['half a prefix', new Uint8Array([7, 1, 0, 0])],
    ['a length beyond the end', new Uint8Array([7, 1, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255])],
    [
      'less than nonce and tag',
      new Uint8Array([7, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 27, ...new Uint8Array(27)]),
    ],
    ['something behind it', new Uint8Array([7, 1, ...new Uint8Array(12), 0])],
  ])('do not begin or end with %s', (_, data) => {
    expect(() => decodeSegments(data)).toThrow(RangeError)
  })

  it('are not a plain block', () => {
    fc.assert(
      fc.property(segment, (input) => {
        expect(() => decodeRecords(encodeSegment(segmentOf(input)))).toThrow(RangeError)
      }),
    )
  })

  it('are rejected or contain exactly the bytes that were sealed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (data) => {
        try {
          const encoded = decodeSegments(data).map(encodeSegment)
          expect(Buffer.concat(encoded).equals(data)).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
        }
      }),
    )
  })
})

describe('skeleton and plaintext', () => {
  it('together contain the records', () => {
    fc.assert(
      fc.property(records, (all) => {
        const skeleton = decodeSkeleton(encodeSkeleton(all))
        const plaintext = encodePlaintext(all)
        expect(joinRecords(skeleton, plaintext ?? new Uint8Array(), meteredBytes(all))).toEqual(all)
      }),
    )
  })

  it('hold commands in the skeleton, and the content of ordinary records in the plaintext', () => {
    const text = (value: string) => new Uint8Array(Buffer.from(value))
    const fence = {
      seqNum: 4,
      timestamp: 8,
      headers: [[text(''), text('fence')]] as const,
      body: text('token'),
    }
    const record = {
      seqNum: 5,
      timestamp: 9,
      headers: [[text('name'), text('value')]] as const,
      body: text('body'),
    }
    expect(decodeRecords(encodeSkeleton([fence, record]))).toEqual([
      { ...fence, command: { kind: 'fence', token: 'token' } },
      { seqNum: 5, timestamp: 9, headers: [], body: text('') },
    ])
    expect(decodeRecords(encodePlaintext([fence, record])!)).toEqual([{ ...record, seqNum: 0, timestamp: 0 }])
    expect(encodePlaintext([fence])).toBeUndefined()
  })

  const record = { seqNum: 0, timestamp: 1, headers: [], body: new Uint8Array([1]) }
  const none = new Uint8Array()

  it.each<[string, () => unknown]>([
    ['an ordinary record in plain text', () => decodeSkeleton(encodeRecords([record]))],
    ['a record too few', () => joinRecords([record, record], encodePlaintext([record])!, 18)],
    ['a record too many', () => joinRecords([record], encodePlaintext([record, record])!, 9)],
    ['no plaintext', () => joinRecords([record], none, 9)],
    ['another metered size', () => joinRecords([record], encodePlaintext([record])!, 8)],
    ['a plaintext that is no block', () => joinRecords([record], new Uint8Array([1]), 9)],
  ])('with %s do not belong together', (_, join) => {
    expect(join).toThrow(RangeError)
  })
})
