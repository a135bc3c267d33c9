const BODY_BYTES = 1024

/** Enough that neighbours differ, and few enough to fit into the cache of the processor. */
const BODIES = 256

/**
 * Incompressible bytes, like encrypted or compressed payloads, so that compression gives no side an
 * advantage. The same in every run.
 */
const bodies: readonly Uint8Array[] = Array.from({ length: BODIES }, (_, index) =>
  pseudoRandomBytes(index + 1),
)

/** The beginnings of the bodies, by length. */
const shorter = new Map<number, readonly Uint8Array[]>([[BODY_BYTES, bodies]])

export function bodyOf(index: number, bytes = BODY_BYTES): Uint8Array {
  return bodiesOf(bytes)[index % BODIES]!
}

/** `count` bodies, beginning with number `first`. */
export function bodiesFrom(first: number, count: number, bytes = BODY_BYTES): Uint8Array[] {
  const all = bodiesOf(bytes)
  return Array.from({ length: count }, (_, index) => all[(first + index) % BODIES]!)
}

/** The most records of `bytes` bytes in a batch: 1,000, and 1 MiB metered. */
export function recordsOfBatch(bytes: number): number {
  return Math.min(1_000, Math.floor(1_048_576 / (bytes + 8)))
}

/** A body as text, for formats that hold text. */
export function textOf(bytes = BODY_BYTES): string {
  return Buffer.from(bodyOf(0))
    .toString('base64')
    .repeat(Math.ceil(bytes / BODY_BYTES))
    .slice(0, bytes)
}

/** Ten milliseconds between two records. */
export function timestampOf(index: number): number {
  return 1_700_000_000_000 + index * 10
}

function bodiesOf(bytes: number): readonly Uint8Array[] {
  let all = shorter.get(bytes)
  if (all === undefined) {
    all = bodies.map((body) => repeated(body, bytes))
    shorter.set(bytes, all)
  }
  return all
}

function repeated(body: Uint8Array, bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes)
  for (let at = 0; at < bytes; at += body.length) whole.set(body.subarray(0, bytes - at), at)
  return whole
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
