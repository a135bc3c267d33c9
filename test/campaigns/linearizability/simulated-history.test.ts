import { describe, expect, it } from 'vitest'
import { checkStream } from './check-stream.ts'
import type { History } from './operations.ts'
import { simulatedHistory } from './simulated-history.ts'

const SEEDS = Array.from({ length: 25 }, (_, index) => index + 1)

/** Without records, as if only their hash were known. */
function byHashesAlone(history: History): History {
  return history.map((recorded) => {
    if (recorded.outcome.kind !== 'read') return recorded
    const { kind, tail, streamHash } = recorded.outcome
    return { ...recorded, outcome: { kind, tail, streamHash } }
  })
}

describe('the checker accepts a correct stream', () => {
  it.each(SEEDS)('seed %d', (seed) => {
    const history = simulatedHistory({ seed, operations: 200, lost: 0.1 })
    expect(checkStream(history).kind).toBe('linearizable')
    expect(checkStream(byHashesAlone(history)).kind).toBe('linearizable')
  })

  it('with thousands of operations, many of unknown outcome', () => {
    const history = simulatedHistory({ seed: 1, operations: 5_000, lost: 0.1 })
    expect(history.filter(({ outcome }) => outcome.kind === 'unknown').length).toBeGreaterThan(200)
    expect(checkStream(history).kind).toBe('linearizable')
  })

  it('with thousands of operations, by hashes alone', () => {
    const history = simulatedHistory({ seed: 2, operations: 5_000, lost: 0.01 })
    expect(checkStream(byHashesAlone(history)).kind).toBe('linearizable')
  })
})
