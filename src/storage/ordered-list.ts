/** Small enough that moving a chunk's items is cheap, large enough that a million items are only thousands of chunks. */
const CHUNK_ITEMS_MAX = 512

/**
 * Distinct items kept in order, as a list of short sorted arrays. Adding at the end and taking from the front, which is what
 * logs and queues do, cost next to nothing; adding anywhere else moves one chunk instead of everything behind it, so that
 * 100,000 names in random order are as good as a balanced tree, with a fraction of its code and memory.
 */
export class OrderedList<Item> {
  readonly #compare: (a: Item, b: Item) => number
  /** None is empty. */
  readonly #chunks: Item[][] = []
  #size = 0

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#size
  }

  first(): Item | undefined {
    return this.#chunks[0]?.[0]
  }

  /** Adds an item that compares equal to none in the list. */
  add(item: Item): void {
    this.#size++
    const last = this.#chunks.at(-1)
    if (last === undefined || this.#compare(last.at(-1)!, item) < 0) {
      if (last === undefined || last.length >= CHUNK_ITEMS_MAX) this.#chunks.push([item])
      else last.push(item)
      return
    }
    const reached = (other: Item) => this.#compare(other, item) >= 0
    const index = this.#chunkIndex(reached)
    const chunk = this.#chunks[index]!
    chunk.splice(lowerBound(chunk, reached), 0, item)
    if (chunk.length > CHUNK_ITEMS_MAX) this.#chunks.splice(index + 1, 0, chunk.splice(CHUNK_ITEMS_MAX / 2))
  }

  /** Removes the item that compares equal, and returns whether there was one. */
  delete(item: Item): boolean {
    const reached = (other: Item) => this.#compare(other, item) >= 0
    const index = this.#chunkIndex(reached)
    const chunk = this.#chunks[index]
    if (chunk === undefined) return false
    const position = lowerBound(chunk, reached)
    if (this.#compare(chunk[position]!, item) !== 0) return false
    chunk.splice(position, 1)
    if (chunk.length === 0) this.#chunks.splice(index, 1)
    this.#size--
    return true
  }

  /**
   * The items from the first for which `reached` holds to the last. `reached` must hold for all items behind that one.
   * The list must not change during the iteration.
   */
  *from(reached: (item: Item) => boolean): Generator<Item, void, undefined> {
    let index = this.#chunkIndex(reached)
    let chunk = this.#chunks[index]
    if (chunk === undefined) return
    let position = lowerBound(chunk, reached)
    while (chunk !== undefined) {
      for (; position < chunk.length; position++) yield chunk[position]!
      position = 0
      chunk = this.#chunks[++index]
    }
  }

  #chunkIndex(reached: (item: Item) => boolean): number {
    return lowerBound(this.#chunks, (chunk) => reached(chunk.at(-1)!))
  }
}

/** Index of the first item for which `reached` holds, or the length. */
function lowerBound<Item>(items: readonly Item[], reached: (item: Item) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (reached(items[middle]!)) high = middle
    else low = middle + 1
  }
  return low
}
