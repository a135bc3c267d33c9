import { crc32 } from 'node:zlib'
import { Prng } from '../../../src/runtime/random.ts'

/** Splits bytes as a network might. The split depends on the bytes, so that a failure can be repeated. */
export function chunksOf(input: Uint8Array): Uint8Array[] {
  const random = new Prng(crc32(input))
  const chunks: Uint8Array[] = []
  for (let at = 0; at < input.length; ) {
    const length = random.chance(0.5) ? 1 + random.below(3) : 1 + random.below(input.length)
    chunks.push(input.subarray(at, at + length))
    at += length
  }
  return chunks
}
