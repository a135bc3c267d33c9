import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appendBatch } from '../../src/model/append-input.ts'
import { SharedCopies } from '../../src/model/shared-copies.ts'

const LENGTHS = [0, 1, 1_024, 8_192, 8_193, 65_536, 65_537]

describe('copies that share memory', () => {
  it('hold what was given, however long, and no copy touches another', () => {
    const lengths = fc.array(fc.oneof(fc.constantFrom(...LENGTHS), fc.nat(70_000)), { maxLength: 40 })
    fc.assert(
      fc.property(lengths, (all) => {
        const copies = new SharedCopies()
        const given = all.map((length, index) => new Uint8Array(length).fill(index + 1))
        const made = given.map((bytes) => copies.of(bytes))
        for (const bytes of given) bytes.fill(0)
        const isWhole = made.every(
          (copy, index) => copy.length === all[index] && copy.every((byte) => byte === index + 1),
        )
        expect(isWhole).toBe(true)
      }),
    )
  })

  it('are few allocations for many small ones', () => {
    const copies = new SharedCopies()
    const made = Array.from({ length: 1_000 }, () => copies.of(new Uint8Array(1_024)))
    expect(new Set(made.map(({ buffer }) => buffer)).size).toBeLessThan(24)
  })

  it.each([2, 10, 100, 1_000])('hold little more than the bytes of %i tiny ones', (count) => {
    const { records } = appendBatch(Array.from({ length: count }, () => new Uint8Array(10)))
    const buffers = new Set(records.map(({ body }) => body.buffer))
    const held = [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0)
    expect(held).toBeLessThan(256 + count * 10 * 4)
  })

  it.each<[string, (length: number) => Uint8Array]>([
    ['Uint8Array', (length) => new Uint8Array(length)],
    ['Buffer', (length) => Buffer.allocUnsafe(length)],
  ])('leave the caller of an append its %s', (_, make) => {
    const bytes = make(100).fill(7)
    const { records } = appendBatch([{ body: bytes, headers: [[bytes, bytes]] }, bytes])
    bytes.fill(9)
    const kept = records.flatMap(({ body, headers }) => [body, ...headers.flat()])
    expect(kept.every((one) => one.length === 100 && one.every((byte) => byte === 7))).toBe(true)
  })
})
