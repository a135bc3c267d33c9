import { type AnySignal, unlessAborted } from './abort.ts'

/** Tells listeners that something has changed, and waits until a condition holds. */
export class Condition {
  readonly #listeners = new Set<() => void>()

  /** Calls back after each change. The returned function ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notify(): void {
    for (const listener of [...this.#listeners]) listener()
  }

  /**
   * Resolves when a condition holds, which is checked now and after each change. Rejects with what it throws,
   * and with the reason of the signal.
   */
  async until(condition: () => boolean, signal?: AnySignal): Promise<void> {
    if (signal?.aborted) throw signal.reason
    if (condition()) return
    let unsubscribe = () => {}
    const reached = new Promise<void>((resolve, reject) => {
      unsubscribe = this.subscribe(() => {
        try {
          if (condition()) resolve()
        } catch (error) {
          reject(error)
        }
      })
    })
    await unlessAborted(signal, reached).finally(unsubscribe)
  }
}
