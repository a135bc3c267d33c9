/** How many names are kept. */
const NAMES_MAX = 256

/** Which streams of a synced basin were used last, in any tab of the device. */
export class RecentUse {
  readonly #names = new Set<string>()

  /** The names of the used streams, the one that was used last first. */
  get names(): readonly string[] {
    return [...this.#names].reverse()
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** Notes that a stream is used now. Returns false if it was the last one that was used already. */
  note(name: string): boolean {
    if ([...this.#names].at(-1) === name) return false
    this.#names.delete(name)
    this.#names.add(name)
    const [oldest] = this.#names
    if (this.#names.size > NAMES_MAX) this.#names.delete(oldest!)
    return true
  }
}
