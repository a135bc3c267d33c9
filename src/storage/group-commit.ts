/** An item that waits to be written, with the functions that settle its `add`. Call one of them, once. */
export interface PendingItem<Item> {
  /** The item as it was given to `add`. */
  readonly item: Item
  /** Resolves the promise that `add` returned. */
  readonly resolve: () => void
  /** Rejects it. */
  readonly reject: (error: unknown) => void
}

/**
 * Group commit: one group of items is written at a time, and those that arrive meanwhile form the next one.
 * Items are written in the order of the calls.
 */
export class GroupCommit<Item> {
  readonly #write: (group: readonly PendingItem<Item>[]) => Promise<void>
  readonly #bytesOf: (item: Item) => number
  readonly #bytesMax: number
  readonly #gather: () => Promise<unknown>
  #waiting: PendingItem<Item>[] = []
  #isWriting = false

  /**
   * @param write Writes a group and settles each of its items. Must not reject.
   * @param bytesOf The size of an item, in bytes.
   * @param bytesMax The largest size of a group, unless a single item is larger.
   * @param gather Waits for further items that belong in the next group; those of the same turn by default.
   */
  constructor(
    write: (group: readonly PendingItem<Item>[]) => Promise<void>,
    bytesOf: (item: Item) => number,
    bytesMax: number,
    gather: () => Promise<unknown> = () => Promise.resolve(),
  ) {
    this.#write = write
    this.#bytesOf = bytesOf
    this.#bytesMax = bytesMax
    this.#gather = gather
  }

  /** Resolves once the item is written. */
  add(item: Item): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (!this.#isWriting) void this.#writeAll()
    })
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      await this.#gather()
      await this.#write(this.#nextGroup())
    }
    this.#isWriting = false
  }

  #nextGroup(): PendingItem<Item>[] {
    let bytes = 0
    const end = this.#waiting.findIndex(({ item }, index) => {
      bytes += this.#bytesOf(item)
      return bytes > this.#bytesMax && index > 0
    })
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end)
  }
}
