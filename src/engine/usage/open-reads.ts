import { dueOperations, type OpenReadTimes, opened } from '../../core/usage/open-read.ts'

interface OpenRead {
  readonly basin: string
  times: OpenReadTimes
}

/** The streaming reads that are open, without a timer for any: what fell due is told when somebody wants to know. */
export class OpenReads {
  readonly #open = new Set<OpenRead>()
  readonly #onDue: (basin: string, minute: number) => void

  constructor(onDue: (basin: string, minute: number) => void) {
    this.#onDue = onDue
  }

  get size(): number {
    return this.#open.size
  }

  /** The returned function ends the read at a time; a second call does nothing. Milliseconds. */
  begin(basin: string, now: number): (now: number) => void {
    const read: OpenRead = { basin, times: opened(now) }
    this.#settleOne(read, now)
    this.#open.add(read)
    return (endedAt) => {
      if (this.#open.delete(read)) this.#settleOne(read, endedAt)
    }
  }

  /** Tells everything that fell due. To be called every minute. */
  settle(now: number): void {
    for (const read of this.#open) this.#settleOne(read, now)
  }

  #settleOne(read: OpenRead, now: number): void {
    const { minutes, next } = dueOperations(read.times, now)
    read.times = next
    for (const minute of minutes) this.#onDue(read.basin, minute)
  }
}
