import type { DiskCache } from './disk-cache.ts'

const CHUNK_BYTES = 256 * 1024
/** Longer reads, such as those of a roll, are not kept. */
const KEPT_BYTES_MAX = 1024 * 1024

type Fetch = (position: number, length: number) => Promise<Buffer>

/** Keeps the parts of objects that were read last. Objects never change, and each has an `id` of its own. */
export class RangeCache {
  readonly #bytesMax: number
  readonly #disk: DiskCache | undefined
  /** Chunks, the least recently read first. Those that are being read have no length yet. */
  readonly #chunks = new Map<string, { readonly data: Promise<Buffer>; bytes: number }>()
  #bytes = 0

  /** @param disk Where parts are looked for that are not in memory. */
  constructor(bytesMax: number, disk?: DiskCache) {
    this.#bytesMax = bytesMax
    this.#disk = disk
  }

  /** Reads a part of an object of `size` bytes into memory of its own. Shorter at the end of the object. */
  async read(id: string, size: number, position: number, length: number, fetch: Fetch): Promise<Buffer> {
    const end = Math.min(position + length, size)
    if (end <= position) return Buffer.alloc(0)
    if (end - position > KEPT_BYTES_MAX) return fetch(position, end - position)
    const first = Math.floor(position / CHUNK_BYTES)
    const last = Math.floor((end - 1) / CHUNK_BYTES)
    const chunks = await Promise.all(
      Array.from({ length: last - first + 1 }, (_, i) => this.#chunk(id, size, first + i, fetch)),
    )
    const start = position - first * CHUNK_BYTES
    return Buffer.concat(chunks).subarray(start, start + end - position)
  }

  #chunk(objectId: string, size: number, index: number, fetch: Fetch): Promise<Buffer> {
    const id = `${objectId}/${index}`
    const known = this.#chunks.get(id)
    this.#chunks.delete(id)
    const chunk = known ?? this.#fetched(id, index * CHUNK_BYTES, size, fetch)
    this.#chunks.set(id, chunk)
    return chunk.data
  }

  #fetched(id: string, position: number, size: number, fetch: Fetch) {
    const length = Math.min(CHUNK_BYTES, size - position)
    const fetchChunk = () => fetch(position, length)
    const chunk = { data: this.#disk?.read(id, length, fetchChunk) ?? fetchChunk(), bytes: 0 }
    chunk.data.then(
      (data) => {
        if (this.#chunks.get(id) !== chunk) return
        chunk.bytes = data.length
        this.#bytes += data.length
        this.#evict()
      },
      () => {
        if (this.#chunks.get(id) === chunk) this.#chunks.delete(id)
      },
    )
    return chunk
  }

  #evict(): void {
    for (const [id, { bytes }] of this.#chunks) {
      if (this.#bytes <= this.#bytesMax) return
      if (bytes === 0) continue
      this.#chunks.delete(id)
      this.#bytes -= bytes
    }
  }
}
