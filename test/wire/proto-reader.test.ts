import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MalformedProto, ProtoReader } from '../../src/wire/proto-reader.ts'

const reader = (...bytes: number[]) => new ProtoReader(Uint8Array.from(bytes))
const group = (depth: number) => [...Array(depth).fill((9 << 3) | 3), ...Array(depth).fill((9 << 3) | 4)]

function skipAll(bytes: readonly number[]): void {
  const fields = new ProtoReader(Uint8Array.from(bytes))
  while (fields.offset < bytes.length) fields.skip(fields.tag())
}

describe('ProtoReader', () => {
  it('reads every unsigned number, exactly as far as numbers go', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (value) => {
        const bytes = new BinaryWriter().uint64(value).finish()
        const wanted = value < 2n ** 53n ? Number(value) : Number.POSITIVE_INFINITY
        const fields = new ProtoReader(bytes)
        expect(fields.uint64()).toBe(wanted)
        expect(fields.offset).toBe(bytes.length)
      }),
    )
  })

  it.each([
    [2n ** 53n - 1n, 2 ** 53 - 1],
    [2n ** 53n, Number.POSITIVE_INFINITY],
    [2n ** 64n - 1n, Number.POSITIVE_INFINITY],
  ])('reads %s', (value, wanted) => {
    expect(new ProtoReader(new BinaryWriter().uint64(value).finish()).uint64()).toBe(wanted)
  })

  it('reads numbers that are longer than they need to be', () => {
    expect(reader(0x81, 0x80, 0x00).uint64()).toBe(1)
    expect(reader(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00).uint64()).toBe(1)
  })

  it.each([
    ['nothing', []],
    ['a number cut short', [0x80]],
    ['eleven bytes', [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]],
    ['65 bits', [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]],
  ])('refuses %s for a number', (_case, bytes) => {
    expect(() => reader(...bytes).uint64()).toThrow(MalformedProto)
  })

  it.each([
    ['field 0', [0x00]],
    ['wire type 6', [(1 << 3) | 6]],
    ['wire type 7', [(1 << 3) | 7]],
    ['a field number of 30 bits', [0x80, 0x80, 0x80, 0x80, 0x10]],
  ])('refuses %s for a tag', (_case, bytes) => {
    expect(() => reader(...bytes).tag()).toThrow(MalformedProto)
  })

  it('takes the largest field number', () => {
    const bytes = new BinaryWriter().tag(2 ** 29 - 1, WireType.Varint).finish()
    expect(new ProtoReader(bytes).tag()).toBe((2 ** 29 - 1) * 8)
  })

  it.each([
    ['a number', [9 << 3, 0x96, 0x01]],
    ['64 bits', [(9 << 3) | 1, 1, 2, 3, 4, 5, 6, 7, 8]],
    ['bytes', [(9 << 3) | 2, 2, 1, 2]],
    ['32 bits', [(9 << 3) | 5, 1, 2, 3, 4]],
    ['an empty group', group(1)],
    ['groups in groups', group(100)],
    ['a group with fields', [(9 << 3) | 3, 1 << 3, 5, (2 << 3) | 2, 1, 9, (9 << 3) | 4]],
  ])('skips %s', (_case, bytes) => {
    expect(() => skipAll([...bytes, 1 << 3, 0])).not.toThrow()
  })

  it.each([
    ['a number cut short', [9 << 3, 0x96]],
    ['64 bits cut short', [(9 << 3) | 1, 1, 2, 3, 4, 5, 6, 7]],
    ['bytes cut short', [(9 << 3) | 2, 2, 1]],
    ['32 bits cut short', [(9 << 3) | 5, 1, 2, 3]],
    ['a group without an end', [(9 << 3) | 3, 1 << 3, 5]],
    ['a group with the end of another', [(9 << 3) | 3, (8 << 3) | 4]],
    ['an end without a group', [(9 << 3) | 4]],
    ['groups too deep', group(101)],
    ['groups deep enough to exhaust the stack', Array(200_000).fill((9 << 3) | 3)],
  ])('refuses to skip %s', (_case, bytes) => {
    expect(() => skipAll(bytes)).toThrow(MalformedProto)
  })

  it('gives plain arrays of a Node buffer, whose slices are copies', () => {
    expect(new ProtoReader(Buffer.from([1, 7])).bytes().constructor).toBe(Uint8Array)
  })
})
