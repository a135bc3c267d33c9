import { dueOperations } from '../../core/usage/open-read.ts'

interface OpenRead {
  readonly basin: string
  readonly openedAt: number
  /** How many operations of it were told. */
  counted: number
}

/** The streaming reads that are open, without a timer for any: what fell due is told when somebody wants to know. */
export class OpenReads {
  readonly #open = new Set<OpenRead>()
  readonly #onDue: (basin: string, minute: number, operations: number) => void

  constructor(onDue: (basin: string, minute: number, operations: number) => void) {
    this.#onDue = onDue
  }

  get size(): number {
    return this.#open.size
  }

  /** The returned function ends the read at a time; a second call does nothing. Milliseconds. */
  begin(basin: string, now: number): (now: number) => void {
    const read: OpenRead = { basin, openedAt: now, counted: 0 }
    this.#settleOne(read, now)
    this.#open.add(read)
    return (endedAt) => {
      if (this.#open.delete(read)) this.#settleOne(read, endedAt)
    }
  }

  /** Tells everything that fell due. */
  settle(now: number): void {
    for (const read of this.#open) this.#settleOne(read, now)
  }

  #settleOne(read: OpenRead, now: number): void {
    for (const [minute, operations] of dueOperations(read, now)) {
      this.#onDue(read.basin, minute, operations)
      read.counted += operations
    }
  }
}
