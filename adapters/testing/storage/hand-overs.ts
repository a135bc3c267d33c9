/** Keeps the appends of each log in their order while some of them are held back. */
export class HandOvers {
  /** Of each log the turn of its last append, while it has not come. */
  readonly #turns = new Map<string, Promise<void>>()

  /** Resolves when the append, itself held back until `held`, may be handed over; undefined is at once. Turns of one log come in the order of the calls. */
  turn(logId: string, held: Promise<void> | undefined): Promise<void> | undefined {
    const before = this.#turns.get(logId)
    if (before === undefined && held === undefined) return undefined
    const turn = Promise.all([before, held]).then(() => {})
    this.#turns.set(logId, turn)
    return turn
  }

  /** The append was handed over, or never will be. */
  done(logId: string, turn: Promise<void> | undefined): void {
    if (turn !== undefined && this.#turns.get(logId) === turn) this.#turns.delete(logId)
  }
}
