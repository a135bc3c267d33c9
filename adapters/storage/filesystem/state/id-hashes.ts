/**
 * The hashes of the ids of logs with their numbers: a table in memory, which a checkpoint stores by buckets.
 */
export class IdHashes {
  #hashes = new Uint32Array(1024)
  #numbers = new Float64Array(1024)
  #size = 0
  /** The position plus 1 of the first entry of each bucket. Undefined until it is needed. */
  #first: Uint32Array | undefined
  /** The position plus 1 of the entry after each one in its bucket. */
  #next = new Uint32Array()

  get size(): number {
    return this.#size
  }

  /** The number of leading bits of a hash that tell its bucket. */
  get bucketBits(): number {
    return Math.max(0, Math.ceil(Math.log2(this.#size / BUCKET_ENTRIES)))
  }

  add(id: Uint8Array, number: number): void {
    if (this.#size === this.#hashes.length) {
      const hashes = new Uint32Array(2 * this.#size)
      const numbers = new Float64Array(2 * this.#size)
      hashes.set(this.#hashes)
      numbers.set(this.#numbers)
      this.#hashes = hashes
      this.#numbers = numbers
    }
    this.#hashes[this.#size] = idHash(id)
    this.#numbers[this.#size++] = number
    this.#first = undefined
  }

  /** The numbers of the logs whose id may be this one. */
  numbersOf(id: Uint8Array): number[] {
    const hash = idHash(id)
    return this.bucket(hashBucket(hash, this.bucketBits)).flatMap((entry) =>
      entry.hash === hash ? entry.number : [],
    )
  }

  /** The entries of a bucket, ascending by hash and number. */
  bucket(index: number): IdHash[] {
    this.#first ??= this.#link()
    const entries: IdHash[] = []
    for (let entry = this.#first[index]!; entry > 0; entry = this.#next[entry - 1]!) {
      entries.push({ hash: this.#hashes[entry - 1]!, number: this.#numbers[entry - 1]! })
    }
    return entries.sort((a, b) => a.hash - b.hash || a.number - b.number)
  }

  #link(): Uint32Array {
    const { bucketBits } = this
    const first = new Uint32Array(2 ** bucketBits)
    this.#next = new Uint32Array(this.#size)
    for (let position = 0; position < this.#size; position++) {
      const bucket = hashBucket(this.#hashes[position]!, bucketBits)
      this.#next[position] = first[bucket]!
      first[bucket] = position + 1
    }
    return first
  }
}

export interface IdHash {
  readonly hash: number
  /** Number of the log. */
  readonly number: number
}

/** How many entries a bucket has on average at most: about 4 KiB. `verify` expects it: keep stable. */
const BUCKET_ENTRIES = 512

export function hashBucket(hash: number, bucketBits: number): number {
  return bucketBits === 0 ? 0 : hash >>> (32 - bucketBits)
}

/** FNV-1a. Persisted: keep stable. */
export function idHash(id: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of id) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
