import type { Prng } from '../../../src/runtime/prng.ts'
import { FORWARD, type StatementAction } from '../../storage/postgres/wire-proxy.ts'

const PROBABILITY = 0.02
const FAULTS: readonly StatementAction[] = [
  { kind: 'cut before' },
  { kind: 'cut after' },
  { kind: 'late' },
  { kind: 'delay' },
  { kind: 'delay' },
]

/** Random faults of the connections to a database: lost statements, lost replies, delays. */
export class StatementFaults {
  isActive = false
  /** The number of occurrences of each fault. */
  readonly counts: Record<string, number> = {}
  readonly #prng: Prng

  constructor(prng: Prng) {
    this.#prng = prng
  }

  next(): StatementAction {
    if (!this.isActive || !this.#prng.chance(PROBABILITY)) return FORWARD
    const fault = this.#prng.pick(FAULTS)
    this.counts[fault.kind] = (this.counts[fault.kind] ?? 0) + 1
    return fault
  }

  /** Runs work that faults would stop, such as the start of a process. */
  async without(work: () => Promise<void>): Promise<void> {
    this.isActive = false
    await work()
    this.isActive = true
  }
}
