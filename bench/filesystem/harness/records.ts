export const BODY_BYTES = 1024

/** Enough that no two neighbours are alike, and few enough to stay in the processor's cache. */
const BODIES = 256

/** Bytes that do not compress, as those of encrypted or compressed payloads: nobody gains by making them smaller. The same in every run. */
const bodies: readonly Uint8Array[] = Array.from({ length: BODIES }, (_, index) =>
  pseudoRandomBytes(index + 1),
)

export function bodyOf(index: number): Uint8Array {
  return bodies[index % BODIES]!
}

/** `count` bodies from `first` on. */
export function bodiesFrom(first: number, count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => bodyOf(first + index))
}

/** Ten milliseconds from one record to the next. */
export function timestampOf(index: number): number {
  return 1_700_000_000_000 + index * 10
}

/** xorshift32. */
function pseudoRandomBytes(seed: number): Uint8Array {
  const words = new Uint32Array(BODY_BYTES / 4)
  let state = seed * 0x9e37_79b9
  for (let index = 0; index < words.length; index++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[index] = state
  }
  return new Uint8Array(words.buffer)
}
