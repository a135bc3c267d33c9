/** The first 32 bits of the fractional parts of the roots of the first primes. */
function fractions(count: number, root: (prime: number) => number): Uint32Array {
  const words = new Uint32Array(count)
  for (let candidate = 2, found = 0; found < count; candidate++) {
    let divisor = 2
    while (candidate % divisor !== 0) divisor++
    if (divisor === candidate) words[found++] = (root(candidate) % 1) * 2 ** 32
  }
  return words
}

const rotate = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits))

/** Returns the SHA-256 of bytes at once, which `crypto.subtle` does not. */
export function sha256(bytes: Uint8Array): Uint8Array {
  const roundConstants = fractions(64, Math.cbrt)
  const hash = fractions(8, Math.sqrt)
  // The message, a bit, zeros, and its length in bits, in whole blocks of 64 bytes.
  const padded = new DataView(new ArrayBuffer(Math.ceil((bytes.length + 9) / 64) * 64))
  new Uint8Array(padded.buffer).set(bytes)
  padded.setUint8(bytes.length, 0x80)
  padded.setBigUint64(padded.byteLength - 8, BigInt(bytes.length) * 8n)

  const schedule = new Uint32Array(64)
  for (let block = 0; block < padded.byteLength; block += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) {
        schedule[i] = padded.getUint32(block + 4 * i)
        continue
      }
      const early = schedule[i - 15]!
      const late = schedule[i - 2]!
      schedule[i] =
        schedule[i - 16]! +
        schedule[i - 7]! +
        (rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3)) +
        (rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10))
    }
    let [a, b, c, d, e, f, g, h] = hash as unknown as [
      ...[number, number, number, number],
      ...[number, number, number, number],
    ]
    for (let i = 0; i < 64; i++) {
      const choice = (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g))
      const majority = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
      const first = h + choice + roundConstants[i]! + schedule[i]!
      h = g
      g = f
      f = e
      e = (d + first) | 0
      d = c
      c = b
      b = a
      a = (first + majority) | 0
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) hash[i] = hash[i]! + word
  }
  const digest = new DataView(new ArrayBuffer(32))
  for (const [i, word] of hash.entries()) digest.setUint32(4 * i, word)
  return new Uint8Array(digest.buffer)
}
