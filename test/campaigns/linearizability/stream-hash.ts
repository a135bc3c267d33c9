const U64 = 0xffff_ffff_ffff_ffffn

/** The hash of a stream without records. */
export const EMPTY_STREAM_HASH = 0n

const FNV_OFFSET = { high: 0xcbf29ce4, low: 0x84222325 }
/** The prime is this plus 2^40. */
const FNV_PRIME_LOW = 0x1b3
const TWO_TO_32 = 0x1_0000_0000

const encoder = new TextEncoder()

/**
 * FNV-1a (64 bits) of the body of a record. Computed in two halves, because it covers every record of every
 * read, and numbers are faster than big integers.
 */
export function recordHash(body: string): bigint {
  let { high, low } = FNV_OFFSET
  for (const byte of encoder.encode(body)) {
    low = (low ^ byte) >>> 0
    const product = low * FNV_PRIME_LOW
    high = (high * FNV_PRIME_LOW + ((low << 8) >>> 0) + Math.floor(product / TWO_TO_32)) % TWO_TO_32
    low = product % TWO_TO_32
  }
  return (BigInt(high) << 32n) | BigInt(low)
}

/**
 * XXH3 uses 16 bytes of its default secret for inputs of 4 to 8 bytes; this is the first half XOR the second.
 */
const XXH3_FLIP = 0x1cad21f72c81017cn ^ 0xdb979083e96dd4den
const XXH3_PRIME = 0x9fb21c651e98df25n
const INPUT_BYTES = 8n

/**
 * The hash of a stream after one more record: XXH3 (64 bits) of the record's hash, as eight bytes in
 * little-endian order, seeded with the previous hash of the stream.
 */
export function chainedHash(streamHash: bigint, hashOfRecord: bigint): bigint {
  const seed = streamHash ^ (swapBytes(streamHash & 0xffff_ffffn) << 32n)
  const flip = (XXH3_FLIP - seed) & U64
  const halvesSwapped = (hashOfRecord >> 32n) | ((hashOfRecord & 0xffff_ffffn) << 32n)
  let hash = halvesSwapped ^ flip
  hash ^= rotateLeft(hash, 49n) ^ rotateLeft(hash, 24n)
  hash = (hash * XXH3_PRIME) & U64
  hash ^= (hash >> 35n) + INPUT_BYTES
  hash = (hash * XXH3_PRIME) & U64
  return hash ^ (hash >> 28n)
}

/** The hash of a stream after more records with these bodies. */
export function streamHashOf(bodies: Iterable<string>, before = EMPTY_STREAM_HASH): bigint {
  let streamHash = before
  for (const body of bodies) streamHash = chainedHash(streamHash, recordHash(body))
  return streamHash
}

/** Reverses the four bytes of a 32-bit number. */
function swapBytes(value: bigint): bigint {
  return (value >> 24n) | ((value >> 8n) & 0xff00n) | ((value << 8n) & 0xff_0000n) | ((value & 0xffn) << 24n)
}

function rotateLeft(value: bigint, bits: bigint): bigint {
  return ((value << bits) | (value >> (64n - bits))) & U64
}
