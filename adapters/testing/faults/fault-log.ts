const ENTRIES_MAX = 10_000

/** What was injected, in its order: the latest 10,000. */
export class FaultLog<Fault> {
  readonly #entries: Fault[] = []

  get entries(): readonly Fault[] {
    return this.#entries.slice(-ENTRIES_MAX)
  }

  add(fault: Fault): void {
    this.#entries.push(fault)
    // Rarely, so that forgetting costs nothing.
    if (this.#entries.length >= 2 * ENTRIES_MAX) this.#entries.splice(0, ENTRIES_MAX)
  }
}
