/** A replacement of items of a list: `removed` items from `index` on, by `inserted`. */
export interface ListChange<Item> {
  /** The index of the first item that changed. */
  readonly index: number
  /** The number of items that were removed there. */
  readonly removed: number
  /** The items in their place. */
  readonly inserted: readonly Item[]
}

/**
 * The records of a stream as a list that never changes: first the confirmed ones in the order of the server,
 * then the pending ones. The next view shares the memory of the one before.
 */
export class RecordView<Item> implements Iterable<Item> {
  /** The number of confirmed records: those before the pending ones. */
  readonly confirmedLength: number
  /** The pending records, in the order in which they were appended. */
  readonly pending: readonly Item[]
  /** The change of the list since the view before. Applied to that list, it gives this one. */
  readonly change: ListChange<Item>
  /** Whether the view has every record that is stored on this device. */
  readonly isCaughtUp: boolean
  /** Grows behind the confirmed records of this view. */
  readonly #confirmed: Item[]

  private constructor(
    confirmed: Item[],
    confirmedLength: number,
    pending: readonly Item[],
    change: ListChange<Item>,
    isCaughtUp: boolean,
  ) {
    this.#confirmed = confirmed
    this.confirmedLength = confirmedLength
    this.pending = pending
    this.change = change
    this.isCaughtUp = isCaughtUp
  }

  /** @internal Returns an empty view, which is the first one, or replaces all items of another. */
  static empty<Item>(before?: RecordView<Item>): RecordView<Item> {
    return new RecordView<Item>([], 0, [], { index: 0, removed: before?.length ?? 0, inserted: [] }, false)
  }

  /** The number of all records. */
  get length(): number {
    return this.confirmedLength + this.pending.length
  }

  /** Returns the record at an index from 0, or undefined beyond the last one. */
  at(index: number): Item | undefined {
    return index < this.confirmedLength ? this.#confirmed[index] : this.pending[index - this.confirmedLength]
  }

  /** Iterates over all records. */
  *[Symbol.iterator](): Generator<Item, void, undefined> {
    for (let index = 0; index < this.confirmedLength; index++) yield this.#confirmed[index]!
    yield* this.pending
  }

  /** Returns the records in an array. It takes time in proportion to their number; `change` does not. */
  toArray(): Item[] {
    return [...this.#confirmed.slice(0, this.confirmedLength), ...this.pending]
  }

  /**
   * @internal Returns the view with further confirmed records, and these pending ones. Items that stay
   * pending must be the same objects.
   */
  next(confirmed: readonly Item[], pending: readonly Item[], isCaughtUp: boolean): RecordView<Item> {
    const items = this.#confirmed.length === this.confirmedLength ? this.#confirmed : this.#ownConfirmed()
    for (const item of confirmed) items.push(item)
    const before = this.pending
    const after = confirmed.length === 0 ? pending : [...confirmed, ...pending]
    const most = Math.min(before.length, after.length)
    let same = 0
    while (same < most && before[same] === after[same]) same++
    let end = 0
    while (end < most - same && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
    const change: ListChange<Item> = {
      index: this.confirmedLength + same,
      removed: before.length - same - end,
      inserted: after.slice(same, after.length - end),
    }
    return new RecordView(items, this.confirmedLength + confirmed.length, pending, change, isCaughtUp)
  }

  /** @internal Returns the view without its first records, which were trimmed. */
  withoutFirst(count: number): RecordView<Item> {
    const items = this.#confirmed.slice(count, this.confirmedLength)
    const change: ListChange<Item> = { index: 0, removed: count, inserted: [] }
    return new RecordView(items, items.length, this.pending, change, this.isCaughtUp)
  }

  #ownConfirmed(): Item[] {
    return this.#confirmed.slice(0, this.confirmedLength)
  }
}
