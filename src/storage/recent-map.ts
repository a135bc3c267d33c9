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
