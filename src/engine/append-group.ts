/**
 * Appends that stand or fall together in order: once one failed, those behind it are not made (an append session). A refusal may still be
 * reconsidered, while the state that it rests on is not certain; until then nothing behind it is made either.
 */
export class AppendGroup {
  #failed = false
  #refused: object | undefined

  /** One of them failed for good. */
  get failed(): boolean {
    return this.#failed
  }

  /** Whether the next one may be made. */
  get isOpen(): boolean {
    return !this.#failed && this.#refused === undefined
  }

  fail(): void {
    this.#failed = true
  }

  refuse(append: object): void {
    this.#refused ??= append
  }

  reconsider(append: object): void {
    if (this.#refused === append) this.#refused = undefined
  }
}
