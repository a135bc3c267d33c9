import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { encodeRecords } from '../../src/storage/block-codec.ts'
import type { TextLines } from '../../src/storage/text-lines.ts'
import { linesOf } from '../support/lines.ts'

const memory = { allocate: (bytes: number) => new Uint8Array(bytes) }

function recordsOf(lines: TextLines, seqNum: number, timestamp: number) {
  return lines.bodies().map((body, index) => ({ seqNum: seqNum + index, timestamp, headers: [], body }))
}

describe('TextLines', () => {
  it('encodes the same block as encodeRecords for the same records', () => {
    const texts = fc.array(fc.oneof(fc.string({ maxLength: 300 }), fc.constant('')), { minLength: 1 })
    const number = fc.oneof(
      fc.constant(0),
      fc.nat(300),
      fc.maxSafeNat().map((value) => value - 1000),
    )
    fc.assert(
      fc.property(texts, fc.nat(20), number, number, (bodies, offset, seqNum, timestamp) => {
        const lines = linesOf(
          bodies.map((text) => text.replaceAll('\n', ' ')),
          offset,
        )
        const first = Math.max(0, seqNum)
        const block = lines.encode({ seqNum: first, timestamp: Math.max(0, timestamp) }, memory)
        expect(block).toEqual(encodeRecords(recordsOf(lines, first, Math.max(0, timestamp))))
      }),
    )
  })

  it('encodes a batch of 1 MiB, and one of 1,000 empty lines', () => {
    for (const bodies of [['x'.repeat(1_048_568)], new Array<string>(1000).fill('')]) {
      const lines = linesOf(bodies)
      const block = lines.encode({ seqNum: 0, timestamp: 0 }, memory)
      expect(Buffer.from(block).equals(encodeRecords(recordsOf(lines, 0, 0)))).toBe(true)
    }
  })

  it('copies lines to memory of their own', () => {
    const lines = linesOf(['a', '', 'bc'], 5)
    const copy = lines.copy()
    lines.bytes.fill(0)
    lines.ends.fill(0)
    expect(copy.bodies().map((body) => [...body])).toEqual(['a', '', 'bc'].map((text) => [...utf8(text)]))
  })
})
