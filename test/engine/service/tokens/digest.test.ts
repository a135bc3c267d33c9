import { describe, expect, it } from 'vitest'
import { isSameDigest, tokenDigest } from '../../../../src/engine/service/tokens/token-format.ts'

describe('a digest', () => {
  const digest = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

  it('is SHA-256 in hexadecimal', async () => {
    expect(await tokenDigest('abc')).toBe(digest)
    expect(await tokenDigest('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  })

  it('is equal only if every digit is', () => {
    expect(isSameDigest(digest, digest)).toBe(true)
    for (let at = 0; at < digest.length; at++) {
      const other = `${digest.slice(0, at)}x${digest.slice(at + 1)}`
      expect([at, isSameDigest(digest, other), isSameDigest(other, digest)]).toEqual([at, false, false])
    }
    for (const other of ['', digest.slice(1), digest.slice(0, -1), `${digest}0`]) {
      expect([isSameDigest(digest, other), isSameDigest(other, digest)]).toEqual([false, false])
    }
  })
})
