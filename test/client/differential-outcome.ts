import type { Headwater } from '../../src/api/headwater.ts'
import { type Engine, HeadwaterError } from '../../src/index.ts'
import type { DrawnCall } from './differential-calls.ts'

/** What a caller sees of a call: the value or the error, and those of the batches of a session. */
export interface Outcome {
  readonly value?: unknown
  readonly error?: { code: string; message: string; field: string | undefined; [detail: string]: unknown }
  readonly inner?: readonly Outcome[]
}

export async function outcomeOf(
  { perform }: Pick<DrawnCall, 'perform'>,
  hw: Headwater,
  engine: Engine,
): Promise<Outcome> {
  try {
    const result = await perform(hw, engine)
    return result instanceof SessionResult ? { inner: result.outcomes } : { value: result }
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    const { code, status, message, retryable, mayHaveEffects, field, seqNum, tail, fencingToken } = error
    const { producerEpoch, expectedSeq, receivedSeq, lastSeq, streamSeq } = error
    const ofProducer = { producerEpoch, expectedSeq, receivedSeq, lastSeq, streamSeq }
    return {
      error: {
        code,
        status,
        message,
        retryable,
        mayHaveEffects,
        field,
        seqNum,
        tail,
        fencingToken,
        ...ofProducer,
      },
    }
  }
}

/** What a call returns that makes several. */
export class SessionResult {
  readonly outcomes: readonly Outcome[]

  constructor(outcomes: readonly Outcome[]) {
    this.outcomes = outcomes
  }
}
