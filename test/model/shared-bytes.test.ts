import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appendBatch, SharedBytes } from '../../src/model/append-input.ts'

const LENGTHS = [0, 1, 1_024, 8_192, 8_193, 65_536, 65_537]

describe('shared bytes', () => {
  it('contain their input, however long, and do not overlap', () => {
    const lengths = fc.array(fc.oneof(fc.constantFrom(...LENGTHS), fc.nat(70_000)), { maxLength: 40 })
    fc.assert(
      fc.property(lengths, (all) => {
        const copies = new SharedBytes()
        const inputs = all.map((length, index) => new Uint8Array(length).fill(index + 1))
        const copied = inputs.map((bytes) => copies.copy(bytes))
        for (const bytes of inputs) bytes.fill(0)
        const isWhole = copied.every(
          (copy, index) => copy.length === all[index] && copy.every((byte) => byte === index + 1),
        )
        expect(isWhole).toBe(true)
      }),
    )
  })

  it('need few allocations for many small inputs', () => {
    const copies = new SharedBytes()
    const copied = Array.from({ length: 1_000 }, () => copies.copy(new Uint8Array(1_024)))
    expect(new Set(copied.map(({ buffer }) => buffer)).size).toBeLessThan(24)
  })

  it.each([2, 10, 100, 1_000])('retain little more than the bytes of %i tiny inputs', (count) => {
    const batch = appendBatch(Array.from({ length: count }, () => new Uint8Array(10)))
    const { records } = batch
    const buffers = new Set(records.map(({ body }) => body.buffer))
    const held = [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0)
    expect(held).toBeLessThan(256 + count * 10 * 4)
  })

  it.each<[string, (length: number) => Uint8Array]>([
    ['Uint8Array', (length) => new Uint8Array(length)],
    ['Buffer', (length) => Buffer.allocUnsafe(length)],
  ])('do not change the %s of the caller of an append', (_, make) => {
    const bytes = make(100).fill(7)
    const batch = appendBatch([{ body: bytes, headers: [[bytes, bytes]] }, bytes])
    bytes.fill(9)
    const arrays = batch.records.flatMap(({ body, headers }) => [body, ...headers.flat()])
    expect(arrays.every((array) => array.length === 100 && array.every((byte) => byte === 7))).toBe(true)
  })
})
