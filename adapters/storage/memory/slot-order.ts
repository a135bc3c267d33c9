import { lowerBound } from '../../../src/storage/ordered-list.ts'

/** Few enough that an insertion moves little, and enough that the arrays cost little beside their numbers. */
const CHUNK_SLOTS = 256

interface Chunk {
  readonly slots: Uint32Array
  /** Above 0. */
  used: number
}

/** Numbers in an order: about seven bytes each, of which an `OrderedList` takes 25. */
export class SlotOrder {
  readonly #compare: (a: number, b: number) => number
  readonly #chunks: Chunk[] = []

  /** @param compare Returns 0 for equal numbers only. */
  constructor(compare: (a: number, b: number) => number) {
    this.#compare = compare
  }

  /** Returns the first number in order. */
  first(): number | undefined {
    return this.#chunks[0]?.slots[0]
  }

  /** Adds a number that is not in the list. */
  add(slot: number): void {
    const reached = (other: number) => this.#compare(other, slot) >= 0
    const chunks = this.#chunks
    if (chunks.length === 0) {
      chunks.push({ slots: new Uint32Array(CHUNK_SLOTS).fill(slot, 0, 1), used: 1 })
      return
    }
    const last = chunks.at(-1)!
    // Most numbers come after everything, which the last chunk takes: searching visits memory in many places.
    const index = reached(last.slots[last.used - 1]!) ? this.#chunkIndex(reached) : chunks.length - 1
    const chunk = chunks[index]!
    const position = lowerBound(chunk.slots, reached, chunk.used)
    if (chunk.used < CHUNK_SLOTS) insert(chunk, position, slot)
    else {
      // Numbers that are added in order fill their chunks.
      const kept = position === CHUNK_SLOTS ? CHUNK_SLOTS : CHUNK_SLOTS / 2
      const next = { slots: new Uint32Array(CHUNK_SLOTS), used: CHUNK_SLOTS - kept }
      next.slots.set(chunk.slots.subarray(kept))
      chunk.used = kept
      chunks.splice(index + 1, 0, next)
      if (position < kept) insert(chunk, position, slot)
      else insert(next, position - kept, slot)
    }
  }

  /** Removes a number that is in the list. */
  delete(slot: number): void {
    const reached = (other: number) => this.#compare(other, slot) >= 0
    const index = this.#chunkIndex(reached)
    const chunk = this.#chunks[index]!
    const position = lowerBound(chunk.slots, reached, chunk.used)
    chunk.slots.copyWithin(position, position + 1, chunk.used)
    chunk.used--
    if (chunk.used === 0) this.#chunks.splice(index, 1)
  }

  /** Iterates from the first number for which `reached` is true, which is monotonic, to the last. */
  *from(reached: (slot: number) => boolean): Generator<number, void, undefined> {
    let index = this.#chunkIndex(reached)
    let chunk = this.#chunks[index]
    if (chunk === undefined) return
    let position = lowerBound(chunk.slots, reached, chunk.used)
    while (chunk !== undefined) {
      for (; position < chunk.used; position++) yield chunk.slots[position]!
      position = 0
      chunk = this.#chunks[++index]
    }
  }

  #chunkIndex(reached: (slot: number) => boolean): number {
    return lowerBound(this.#chunks, ({ slots, used }) => reached(slots[used - 1]!))
  }
}

function insert(chunk: Chunk, position: number, slot: number): void {
  chunk.slots.copyWithin(position + 1, position, chunk.used)
  chunk.slots[position] = slot
  chunk.used++
}
