import { Prng } from '../../../src/runtime/random.ts'
import { FORWARD, type StatementAction } from './wire-proxy.ts'

/** Features that other engines with PostgreSQL's protocol lack. */
const UNSUPPORTED =
  /^(LISTEN|NOTIFY|CALL|DO|CREATE (OR REPLACE )?(FUNCTION|PROCEDURE))\b|\bpg_notify\b|\bpg_\w*advisory\w*/

/**
 * Simulates an engine that is not quite PostgreSQL, on a bad network. Counts the faults, so that a test can
 * check that they happened.
 */
export class Compatibility {
  readonly faults = new Map<StatementAction['kind'], number>()
  readonly unsupported = new Set<string>()
  /** Probability of each fault. */
  rate: number
  /** One per connection: connections share time, so that common draws would depend on their order. */
  readonly #prngs: Prng[] = []
  readonly #seed: number

  constructor(seed: number, rate: number) {
    this.#seed = seed
    this.rate = rate
  }

  actionOf(statement: string, connection: number): StatementAction {
    this.#prngs[connection] ??= new Prng(this.#seed * 1_000_003 + connection)
    const action = this.#draw(statement, this.#prngs[connection])
    if (action.kind !== 'forward') this.faults.set(action.kind, (this.faults.get(action.kind) ?? 0) + 1)
    return action
  }

  #draw(statement: string, prng: Prng): StatementAction {
    const unsupported = UNSUPPORTED.exec(statement)?.[0]
    if (unsupported !== undefined) {
      this.unsupported.add(unsupported)
      return { kind: 'reject', code: '0A000', message: `unimplemented: ${unsupported}` }
    }
    for (const action of FAULTS) if (prng.chance(this.rate)) return action
    return FORWARD
  }
}

const FAULTS: readonly StatementAction[] = [
  { kind: 'reject', code: '40001', message: 'restart transaction' },
  { kind: 'cut before' },
  { kind: 'cut after' },
  { kind: 'late' },
]
