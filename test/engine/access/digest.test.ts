import { describe, expect, it } from 'vitest'
import { sameDigest, sha256 } from '../../../src/engine/access/digest.ts'
import { utf8 } from '../../../src/model/bytes.ts'

describe('a digest', () => {
  const digest = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

  it('is SHA-256 in hexadecimal digits', async () => {
    expect(await sha256(utf8('abc'))).toBe(digest)
    expect(await sha256(utf8(''))).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  })

  it('is the same only when each digit is', () => {
    expect(sameDigest(digest, digest)).toBe(true)
    for (let at = 0; at < digest.length; at++) {
      const other = `${digest.slice(0, at)}x${digest.slice(at + 1)}`
      expect([at, sameDigest(digest, other), sameDigest(other, digest)]).toEqual([at, false, false])
    }
    for (const other of ['', digest.slice(1), digest.slice(0, -1), `${digest}0`]) {
      expect([sameDigest(digest, other), sameDigest(other, digest)]).toEqual([false, false])
    }
  })
})
