import type { Prng } from '../../../src/runtime/random.ts'
import type { Append, Operation, Outcome } from './operations.ts'

const APPENDS = 0.65
const READS = 0.1

/**
 * The state that the clients of a stream last observed. They share it, so that several of them compete for
 * the same position or token.
 */
export class KnownState {
  #tail = 0
  readonly #tokens = ['']

  /** Mostly the current one. */
  tail(prng: Prng): number {
    return prng.chance(0.85) ? this.#tail : Math.max(0, this.#tail + prng.below(5) - 2)
  }

  /** Mostly the current one, otherwise an earlier one. */
  token(prng: Prng): string {
    return prng.chance(0.8) ? this.#tokens.at(-1)! : prng.pick(this.#tokens)
  }

  learn(operation: Operation, outcome: Outcome): void {
    if (outcome.kind === 'tail' || outcome.kind === 'read') this.#tail = outcome.tail
    else if (outcome.kind === 'appended') {
      const { setFencingToken } = operation as Append
      this.#tail = Math.max(this.#tail, outcome.end)
      if (setFencingToken !== undefined) this.#tokens.push(setFencingToken)
    } else if (outcome.kind === 'refused') {
      if ('seqNum' in outcome) this.#tail = outcome.seqNum
      else this.#tokens.push(outcome.fencingToken)
    }
  }
}

/** The next operation of a client. `name` makes its records unique. */
export function nextOperation(prng: Prng, state: KnownState, name: () => string): Operation {
  const kind = prng.next()
  if (kind >= APPENDS) return { kind: kind < APPENDS + READS ? 'read' : 'check-tail' }
  const fences = prng.chance(0.12)
  const clears = fences && prng.chance(0.25)
  // A fence may be a batch of its own. Without a token, it needs another record that makes it unique.
  const records = prng.below(3) + (fences && !clears ? 0 : 1)
  return {
    kind: 'append',
    bodies: Array.from({ length: records }, name),
    ...(fences && { setFencingToken: clears ? '' : name() }),
    ...(prng.chance(0.4) && { matchSeqNum: state.tail(prng) }),
    ...(prng.chance(0.4) && { fencingToken: state.token(prng) }),
  }
}
