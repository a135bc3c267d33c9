const u64 = (value: bigint) => BigInt.asUintN(64, value)

/** FNV-1a (64 bits) of the body of a record. */
export function recordHash(body: string): bigint {
  let hash = 0xcbf2_9ce4_8422_2325n
  for (const byte of new TextEncoder().encode(body)) hash = u64((hash ^ BigInt(byte)) * 0x100_0000_01b3n)
  return hash
}

/** The hash of a stream with these bodies: 0, then {@link chainedHash} of each. */
export function streamHashOf(bodies: Iterable<string>): bigint {
  let hash = 0n
  for (const body of bodies) hash = chainedHash(hash, recordHash(body))
  return hash
}

/** Of the default secret of XXH3, two halves whose XOR it uses for inputs of eight bytes. */
const XXH3_FLIP = 0x1cad_21f7_2c81_017cn ^ 0xdb97_9083_e96d_d4den
const XXH3_PRIME = 0x9fb2_1c65_1e98_df25n

/** XXH3 (64 bits) of the record's hash, as eight bytes in little-endian order, seeded with the hash before. */
export function chainedHash(streamHash: bigint, hashOfRecord: bigint): bigint {
  const seed = streamHash ^ (reversedBytes(streamHash & 0xffff_ffffn) << 32n)
  const swapped = (hashOfRecord >> 32n) | ((hashOfRecord & 0xffff_ffffn) << 32n)
  let hash = swapped ^ u64(XXH3_FLIP - seed)
  hash ^= rotated(hash, 49n) ^ rotated(hash, 24n)
  hash = u64(hash * XXH3_PRIME)
  hash ^= (hash >> 35n) + 8n
  hash = u64(hash * XXH3_PRIME)
  return hash ^ (hash >> 28n)
}

/** Reverses the four bytes of a 32-bit number. */
function reversedBytes(value: bigint): bigint {
  return (value >> 24n) | ((value >> 8n) & 0xff00n) | ((value << 8n) & 0xff_0000n) | ((value & 0xffn) << 24n)
}

function rotated(value: bigint, bits: bigint): bigint {
  return u64(value << bits) | (value >> (64n - bits))
}
