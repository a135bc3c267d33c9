import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appendBatch, ownedBatch } from '../../src/model/append-input.ts'
import { copiedBytes, copiedText } from '../../src/model/bytes.ts'

const LENGTHS = [0, 1, 1_024, 2_048, 2_049, 16_384, 16_385]

describe('copies', () => {
  it('contain their input, however long, and do not overlap', () => {
    const lengths = fc.array(fc.oneof(fc.constantFrom(...LENGTHS), fc.nat(70_000)), { maxLength: 40 })
    fc.assert(
      fc.property(lengths, (all) => {
        const inputs = all.map((length, index) => new Uint8Array(length).fill(index + 1))
        const copied = inputs.map((bytes) => copiedBytes(bytes))
        for (const bytes of inputs) bytes.fill(0)
        const isWhole = copied.every(
          (copy, index) => copy.length === all[index] && copy.every((byte) => byte === index + 1),
        )
        expect(isWhole).toBe(true)
      }),
    )
  })

  it('need few allocations for many small inputs', () => {
    const copied = Array.from({ length: 1_000 }, () => copiedBytes(new Uint8Array(1_024)))
    expect(new Set(copied.map(({ buffer }) => buffer)).size).toBeLessThan(70)
  })

  it.each([100, 682, 683, 20_000])('encode texts of %i characters', (length) => {
    const texts = ['a', '\u00e9', '\u20ac'].map((character) => character.repeat(length))
    const copied = texts.map(copiedText)
    expect(copied.map((bytes) => new TextDecoder().decode(bytes))).toEqual(texts)
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

  it.each([
    ['shares', 800, true],
    ['does not share', 8_200, false],
  ])('a batch of a request %s memory of %i bytes', (_, length, isShared) => {
    const received = new Uint8Array(length)
    const { records } = ownedBatch([received.subarray(0, 100)], {}, received)
    expect(records[0]!.body.buffer === received.buffer).toBe(isShared)
  })
})
