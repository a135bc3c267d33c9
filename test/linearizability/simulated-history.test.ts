import { describe, expect, it } from 'vitest'
import { Prng } from '../../src/storage/conformance/prng.ts'
import { checkHistory } from './check-history.ts'
import { checkStream } from './check-stream.ts'
import { describeFinding } from './describe-finding.ts'
import type { AppendOperation, AppendOutcome, History, Outcome } from './operations.ts'
import { SimulatedStream, simulatedHistory } from './simulated-history.ts'
import { contentsOf } from './stream-client.ts'

const SEEDS = Array.from({ length: 25 }, (_, index) => index + 1)

/** Without what tells more than a hash of the records. */
function byHashesAlone(history: History): History {
  return history.map((recorded) => {
    if (recorded.outcome.kind !== 'read') return recorded
    const { kind, tail, streamHash } = recorded.outcome
    return { ...recorded, outcome: { kind, tail, streamHash } }
  })
}

describe('the checker accepts what a stream does', () => {
  it.each(SEEDS)('seed %d', (seed) => {
    const history = simulatedHistory({ seed, operations: 200, lost: 0.1 })
    expect(checkStream(history).kind).toBe('linearizable')
    expect(checkStream(byHashesAlone(history)).kind).toBe('linearizable')
  })

  it('in thousands of operations, of which many are of unknown outcome', () => {
    const history = simulatedHistory({ seed: 1, operations: 5_000, lost: 0.1 })
    expect(history.filter(({ outcome }) => outcome.kind === 'unknown').length).toBeGreaterThan(200)
    expect(checkStream(history).kind).toBe('linearizable')
  })

  it('in thousands of operations, by hashes alone', () => {
    const history = simulatedHistory({ seed: 2, operations: 5_000, lost: 0.01 })
    expect(checkStream(byHashesAlone(history)).kind).toBe('linearizable')
  })
})

/** A stream that does something wrong at times. */
abstract class BrokenStream extends SimulatedStream {
  breaks = 0
  readonly #prng: Prng

  constructor(seed: number) {
    super()
    this.#prng = new Prng(seed)
  }

  protected strikes(): boolean {
    const strikes = this.records.length > 0 && this.#prng.chance(0.05)
    if (strikes) this.breaks++
    return strikes
  }
}

const BROKEN: Readonly<Record<string, new (seed: number) => BrokenStream>> = {
  'an append that is acknowledged and lost': class extends BrokenStream {
    override store(append: AppendOperation): AppendOutcome {
      const start = this.records.length
      if (!this.strikes()) return super.store(append)
      const end = start + append.recordHashes.length
      return { kind: 'appended', start, end, tail: end }
    }
  },
  'an append that is made twice': class extends BrokenStream {
    override store(append: AppendOperation): AppendOutcome {
      const outcome = super.store(append)
      if (this.strikes()) super.store(append)
      return outcome
    }
  },
  'appends that change places later': class extends BrokenStream {
    override store(append: AppendOperation): AppendOutcome {
      const outcome = super.store(append)
      if (this.records.length > 10 && this.strikes()) this.records.unshift(...this.records.splice(5, 1))
      return outcome
    }
  },
  'several winners of one sequence number': class extends BrokenStream {
    override append(append: AppendOperation): AppendOutcome {
      const outcome = super.append(append)
      if (outcome.kind !== 'refused' || 'fencingToken' in outcome || !this.strikes()) return outcome
      return this.store(append)
    }
  },
  'a stale fencing token that is accepted': class extends BrokenStream {
    override append(append: AppendOperation): AppendOutcome {
      const outcome = super.append(append)
      if (outcome.kind !== 'refused' || 'seqNum' in outcome || !this.strikes()) return outcome
      return this.store(append)
    }
  },
  'a refusal without a reason': class extends BrokenStream {
    override store(append: AppendOperation): AppendOutcome {
      return this.strikes() ? { kind: 'refused', seqNum: this.records.length } : super.store(append)
    }
  },
  'a read that lacks what was acknowledged': class extends BrokenStream {
    override read(acknowledged: number): Outcome {
      if (acknowledged === 0 || !this.strikes()) return super.read(acknowledged)
      return contentsOf(this.records.slice(0, acknowledged - 1))
    }
  },
  'a read of something that nobody appended': class extends BrokenStream {
    override read(acknowledged: number): Outcome {
      return this.strikes() ? contentsOf([...this.records, 1n]) : super.read(acknowledged)
    }
  },
  'a tail that goes back': class extends BrokenStream {
    override checkTail(acknowledged: number): Outcome {
      if (acknowledged === 0 || !this.strikes()) return super.checkTail(acknowledged)
      return { kind: 'tail', tail: acknowledged - 1 }
    }
  },
}

describe('the checker finds', () => {
  it.each(Object.entries(BROKEN))('%s', (_, Broken) => {
    let found = 0
    for (const seed of SEEDS) {
      const stream = new Broken(seed)
      const history = simulatedHistory({ seed, operations: 150, lost: 0.05, stream })
      if (stream.breaks === 0) continue
      const finding = checkHistory(history)
      expect(finding?.verdict.kind, `seed ${seed}`).toBe('violation')
      expect(describeFinding(finding!)).toContain('One of these must come next, but none can:\n  [')
      // It may take too many orders to be certain of it.
      const byHashes = checkStream(byHashesAlone(history), { configurationsMax: 5_000 })
      expect(byHashes.kind, `seed ${seed}, by hashes alone`).not.toBe('linearizable')
      found++
    }
    expect(found).toBeGreaterThan(5)
  })
})
