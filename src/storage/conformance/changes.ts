/** Collects what `onLogChanged` is told, so that a test can wait for it. */
export class Changes {
  readonly #timeoutMs: number
  readonly #told: string[] = []
  readonly #waiters = new Set<() => void>()

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** To be given to `open`. */
  readonly onLogChanged = (logId: string): void => {
    this.#told.push(logId)
    for (const check of this.#waiters) check()
  }

  get count(): number {
    return this.#told.length
  }

  /** Waits until a log's change is told, counting only what is told after `clear`. */
  told(logId: string, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        if (!this.#told.includes(logId)) return
        clearTimeout(timer)
        this.#waiters.delete(check)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiters.delete(check)
        reject(new Error(`${what}: onLogChanged('${logId}') was not called within ${this.#timeoutMs} ms`))
      }, this.#timeoutMs)
      this.#waiters.add(check)
      check()
    })
  }

  clear(): void {
    this.#told.length = 0
  }
}
