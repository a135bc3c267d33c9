import { expect, it } from 'vitest'
import { Prng } from '../../../src/runtime/prng.ts'
import { checkStream } from './check-stream.ts'
import {
  type AppendOperation,
  type History,
  isEffective,
  type Outcome,
  type RecordedOperation,
} from './operations.ts'
import { simulatedHistory } from './simulated-history.ts'
import { contentsOf } from './stream-client.ts'
import { afterAppend, contradiction, EMPTY_STREAM, type StreamState } from './stream-model.ts'

/** Tries every order. */
function hasOrder(left: History, state: StreamState = EMPTY_STREAM): boolean {
  if (left.every(({ outcome }) => outcome.kind === 'unknown')) return true
  return left.some((next) => {
    const others = left.filter((recorded) => recorded !== next)
    const precedesItsCall = others.some(
      ({ outcome, returnedAt }) => outcome.kind !== 'unknown' && returnedAt < next.calledAt,
    )
    if (precedesItsCall || contradiction(state, next) !== undefined) return false
    return hasOrder(others, isEffective(next) ? afterAppend(state, next.operation as AppendOperation) : state)
  })
}

/** Changes a number of an outcome, or moves a return to an earlier time. */
function changed(prng: Prng, recorded: RecordedOperation): RecordedOperation {
  const by = prng.chance(0.5) ? 1 : -1
  const outcome = recorded.outcome
  const other = ((): Outcome => {
    switch (outcome.kind) {
      case 'appended':
        return { ...outcome, start: outcome.start + by, end: outcome.end + by, tail: outcome.end + by }
      case 'refused':
        return 'seqNum' in outcome
          ? { ...outcome, seqNum: outcome.seqNum + by }
          : { ...outcome, fencingToken: '' }
      case 'tail':
        return { ...outcome, tail: outcome.tail + by }
      case 'read':
        return contentsOf(outcome.recordHashes!.slice(0, -1))
      default:
        return outcome
    }
  })()
  const { calledAt, returnedAt } = recorded
  return { ...recorded, outcome: other, returnedAt: calledAt + (returnedAt - calledAt) / (1 + prng.below(2)) }
}

it('the checker agrees with a search through every order', () => {
  const counts = { linearizable: 0, violation: 0, undecided: 0 }
  for (let seed = 1; seed <= 1_500; seed++) {
    const prng = new Prng(seed)
    const history = simulatedHistory({ seed, operations: 6, clients: 3, lost: 0.3 })
    const index = prng.below(history.length * 2)
    const perturbed = history.map((recorded, i) => (i === index ? changed(prng, recorded) : recorded))
    const { kind } = checkStream(perturbed)
    expect(kind, `seed ${seed}`).toBe(hasOrder(perturbed) ? 'linearizable' : 'violation')
    counts[kind]++
  }
  expect(counts.linearizable).toBeGreaterThan(500)
  expect(counts.violation).toBeGreaterThan(200)
})
