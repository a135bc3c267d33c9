import type { StoredBlock } from '../storage/contract.ts'

/** How many reads of an engine may have stored blocks waiting: each at most 4 MiB metered, and 8,000 records. */
const WAITING_MAX = 16

/** Blocks that a read will most likely want next, asked for while it delivers those before. */
export interface Ahead {
  /** The sequence number that they were read from. */
  readonly from: number
  /** Resolves to undefined when they could not be read, or are not kept any more: who wants them asks anew, and hears the reason. */
  take(): Promise<readonly StoredBlock[] | undefined>
  /** They are not wanted. */
  drop(): void
}

/** What all reads of an engine have read ahead. When many have, those that have waited longest go without. */
export class ReadAhead {
  /** In the order in which they were begun. */
  readonly #waiting = new Set<Ahead>()

  begin(from: number, read: () => Promise<readonly StoredBlock[]>): Ahead {
    const waiting = this.#waiting
    let blocks: Promise<readonly StoredBlock[] | undefined> | undefined = read().catch(() => undefined)
    const ahead: Ahead = {
      from,
      async take() {
        const taken = blocks
        ahead.drop()
        return taken
      },
      drop() {
        blocks = undefined
        waiting.delete(ahead)
      },
    }
    waiting.add(ahead)
    if (waiting.size > WAITING_MAX) {
      const [oldest] = waiting
      oldest!.drop()
    }
    return ahead
  }
}
