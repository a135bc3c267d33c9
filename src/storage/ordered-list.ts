/** Small enough that inserting is cheap, large enough that a million items are only thousands of chunks. */
const CHUNK_ITEMS_MAX = 128

/**
 * Distinct items in order, as a list of short sorted arrays. Appending and removing from the front, as logs
 * and queues do, cost next to nothing. Inserting elsewhere moves one chunk instead of all later items, so
 * that 100,000 names in random order are as fast as in a balanced tree, with a fraction of its code and
 * memory.
 */
export class OrderedList<Item> {
  readonly #compare: (a: Item, b: Item) => number
  /** Chunks are never empty. */
  #chunks: Item[][] = []
  #size = 0

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare
  }

  /** The number of items. */
  get size(): number {
    return this.#size
  }

  /** Returns the first item in order. */
  first(): Item | undefined {
    return this.#chunks[0]?.[0]
  }

  /** Adds an item. None in the list may compare equal to it. Returns whether it is now the first. */
  add(item: Item): boolean {
    this.#size++
    const last = this.#chunks.at(-1)
    if (last === undefined) {
      // Not pushed, which would make room for seventeen: there may be 100,000 lists of one item.
      this.#chunks = [[item]]
      return true
    }
    if (this.#compare(last.at(-1)!, item) < 0) {
      if (last.length >= CHUNK_ITEMS_MAX) this.#chunks.push([item])
      else last.push(item)
      return false
    }
    const reached = (other: Item) => this.#compare(other, item) >= 0
    const index = this.#chunkIndex(reached)
    const chunk = this.#chunks[index]!
    chunk.splice(lowerBound(chunk, reached), 0, item)
    if (chunk.length > CHUNK_ITEMS_MAX) this.#chunks.splice(index + 1, 0, chunk.splice(CHUNK_ITEMS_MAX / 2))
    return this.#chunks[0]![0] === item
  }

  /** Removes the item that compares equal. Returns whether there was one. */
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
   * Iterates from the first item for which `reached` is true to the last. `reached` must be monotonic, and
   * the list must not change during the iteration.
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

/** Index of the first of `length` items for which the monotonic `reached` is true, or `length`. */
export function lowerBound<Item>(
  items: ArrayLike<Item>,
  reached: (item: Item) => boolean,
  length = items.length,
): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (reached(items[middle]!)) high = middle
    else low = middle + 1
  }
  return low
}

/** A map that keeps the entries which were set most recently. */
export class RecentMap<Key, Value> extends Map<Key, Value> {
  readonly #entriesMax: number

  /** @param entriesMax The largest number of entries. */
  constructor(entriesMax: number) {
    super()
    this.#entriesMax = entriesMax
  }

  /** Sets an entry, and removes the oldest one if there are too many. */
  override set(key: Key, value: Value): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#entriesMax) {
      this.delete(this.keys().next().value!)
    }
    return this
  }
}
