import { Prng } from '../../../src/runtime/prng.ts'
import { type Fate, FORWARD } from './wire-proxy.ts'

/** Features that other engines with PostgreSQL's protocol lack. */
const UNSUPPORTED =
  /^(LISTEN|NOTIFY|CALL|DO|CREATE (OR REPLACE )?(FUNCTION|PROCEDURE))\b|\bpg_notify\b|\bpg_\w*advisory\w*/

/**
 * The fates of statements on an engine that is not quite PostgreSQL, on a bad network. Counts the faults, so
 * that a test can tell whether they happened.
 */
export class Compatibility {
  readonly faults = new Map<Fate['kind'], number>()
  readonly unsupported = new Set<string>()
  /** Probability of each fault. */
  rate: number
  readonly #prng: Prng

  constructor(seed: number, rate: number) {
    this.#prng = new Prng(seed)
    this.rate = rate
  }

  fateOf(statement: string): Fate {
    const fate = this.#draw(statement)
    if (fate.kind !== 'forward') this.faults.set(fate.kind, (this.faults.get(fate.kind) ?? 0) + 1)
    return fate
  }

  #draw(statement: string): Fate {
    const unsupported = UNSUPPORTED.exec(statement)?.[0]
    if (unsupported !== undefined) {
      this.unsupported.add(unsupported)
      return { kind: 'reject', code: '0A000', message: `unimplemented: ${unsupported}` }
    }
    for (const fate of FAULTS) if (this.#prng.chance(this.rate)) return fate
    return FORWARD
  }
}

const FAULTS: readonly Fate[] = [
  { kind: 'reject', code: '40001', message: 'restart transaction' },
  { kind: 'cut before' },
  { kind: 'cut after' },
  { kind: 'late' },
]
