import { ByteSemaphore } from '../../src/runtime/byte-semaphore.ts'

/** Limits how many connections are open at once. Callers get theirs in the order of the calls. */
export class ConnectionLimit {
  readonly #free: ByteSemaphore

  constructor(connectionsMax: number) {
    this.#free = new ByteSemaphore(connectionsMax)
  }

  /** Resolves when a connection is free, to a function that frees it again. */
  async acquire(): Promise<() => void> {
    await new Promise<void>((resolve) => this.#free.acquire(1, resolve))
    let isHeld = true
    return () => {
      if (isHeld) this.#free.release(1)
      isHeld = false
    }
  }

  /** Runs work that takes one connection. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    const release = await this.acquire()
    return work().finally(release)
  }
}
