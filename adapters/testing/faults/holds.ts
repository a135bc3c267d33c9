import type { Clock } from '../../../src/storage/clock.ts'

/** Calls that are held back by a clock, and can be let go before their time. */
export class Holds {
  readonly #waiting = new Set<() => void>()
  #releases = 0

  /** What holds back one call, and then perhaps its answer, from now until everybody is let go. */
  begin(clock: Clock): Hold {
    const since = this.#releases
    return async (ms, signal) => {
      if (ms > 0 && since === this.#releases && !signal?.aborted) await this.#wait(clock, ms, signal)
    }
  }

  /** Everybody who is held back goes on, and is not held back again. */
  release(): void {
    this.#releases++
    for (const go of [...this.#waiting]) go()
  }

  #wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        cancel()
        signal?.removeEventListener('abort', go)
        this.#waiting.delete(go)
        resolve()
      }
      const cancel = clock.schedule(ms, go)
      signal?.addEventListener('abort', go, { once: true })
      this.#waiting.add(go)
    })
  }
}

/** Resolves when the time has passed, when the signal aborts, or when everybody is let go. */
export type Hold = (ms: number, signal?: AbortSignal) => Promise<void>
