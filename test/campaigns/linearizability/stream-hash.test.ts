import { describe, expect, it } from 'vitest'
import { chainedHash, EMPTY_STREAM_HASH, recordHash, streamHashOf } from './stream-hash.ts'

describe('the hash of a stream', () => {
  // Values of `xxh3_64(record hash, seed = stream hash)` in the reference implementation.
  it.each([
    [0n, 0n, 0xc77b3abb6f87acd9n],
    [0n, 1n, 0x2fbc593564db792en],
    [0n, 0x0123456789abcdefn, 0xb78df414284277a6n],
    [0xfedcba9876543210n, 0x0123456789abcdefn, 0xa18be6cb2d16bccan],
    [0xffffffffffffffffn, 1n, 0x7928e38151286e3cn],
  ])('after %d and a record %d is %d', (streamHash, hashOfRecord, expected) => {
    expect(chainedHash(streamHash, hashOfRecord)).toBe(expected)
  })

  it('begins with 0 and adds one record after another', () => {
    expect(streamHashOf([])).toBe(EMPTY_STREAM_HASH)
    expect(streamHashOf([1n, 2n])).toBe(chainedHash(chainedHash(0n, 1n), 2n))
    expect(streamHashOf([1n, 2n])).not.toBe(streamHashOf([2n, 1n]))
  })
})

describe('the hash of a record', () => {
  // Published test vectors of FNV-1a.
  it.each([
    ['', 0xcbf29ce484222325n],
    ['a', 0xaf63dc4c8601ec8cn],
    ['foobar', 0x85944171f73967e8n],
  ])('%j', (body, expected) => {
    expect(recordHash(new TextEncoder().encode(body))).toBe(expected)
  })
})
