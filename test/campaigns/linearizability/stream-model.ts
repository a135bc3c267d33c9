import { type Append, type AppendOutcome, type RecordedOperation, recordsOf } from './operations.ts'
import { EMPTY_STREAM_HASH, streamHashOf } from './stream-hash.ts'

/** The state of a stream in the sequential model. */
export interface StreamState {
  /** The sequence number of the next record. */
  readonly tail: number
  /** `streamHashOf` all records. */
  readonly streamHash: bigint
  /** `''` if there is none. */
  readonly fencingToken: string
}

export const EMPTY_STREAM: StreamState = { tail: 0, streamHash: EMPTY_STREAM_HASH, fencingToken: '' }

/** Returns why the operation cannot have its outcome in this state, as a clause, or undefined if it can. */
export function contradiction(
  state: StreamState,
  { operation, outcome }: Pick<RecordedOperation, 'operation' | 'outcome'>,
): string | undefined {
  switch (outcome.kind) {
    case 'appended':
      return ackContradiction(state, operation as Append, outcome)
    case 'refused':
      return rejectionContradiction(state, operation as Append, outcome)
    case 'unknown':
      return rejectionIn(state, operation as Append)
    case 'read':
      if (outcome.tail !== state.tail) return `the stream has ${state.tail} records`
      return outcome.streamHash === state.streamHash ? undefined : 'the stream has other records'
    case 'tail':
      return outcome.tail === state.tail ? undefined : `the tail is ${state.tail}`
    case 'not-made':
    case 'failed':
      return undefined
  }
}

/** Returns the state after an append. */
export function afterAppend(state: StreamState, append: Append): StreamState {
  const records = recordsOf(append)
  return {
    tail: state.tail + records.length,
    streamHash: streamHashOf(records, state.streamHash),
    fencingToken: append.setFencingToken ?? state.fencingToken,
  }
}

/**
 * Returns the condition of the append that does not hold (docs/protocol.md "Append conditions"). The fencing
 * token is checked first.
 */
function failedCondition(
  state: StreamState,
  { fencingToken, matchSeqNum }: Append,
): 'fencingToken' | 'matchSeqNum' | undefined {
  if (fencingToken !== undefined && fencingToken !== state.fencingToken) return 'fencingToken'
  if (matchSeqNum !== undefined && matchSeqNum !== state.tail) return 'matchSeqNum'
  return undefined
}

function rejectionIn(state: StreamState, append: Append): string | undefined {
  const failed = failedCondition(state, append)
  if (failed === 'fencingToken') return `the fencing token is ${JSON.stringify(state.fencingToken)}`
  return failed && `the tail is ${state.tail}`
}

function ackContradiction(
  state: StreamState,
  append: Append,
  { start, end, tail }: AppendOutcome & { kind: 'appended' },
): string | undefined {
  if (start !== state.tail) return `the tail is ${state.tail}`
  const { length } = recordsOf(append)
  if (end !== start + length) return `${length} records were appended`
  if (tail < end) return 'the tail in the ack is before the end of the append'
  return rejectionIn(state, append)
}

function rejectionContradiction(
  state: StreamState,
  append: Append,
  outcome: AppendOutcome & { kind: 'refused' },
): string | undefined {
  const failed = failedCondition(state, append)
  if ('fencingToken' in outcome) {
    if (outcome.fencingToken === state.fencingToken && failed === 'fencingToken') return undefined
    return `the fencing token is ${JSON.stringify(state.fencingToken)}`
  }
  if (failed === 'fencingToken') return `the fencing token is ${JSON.stringify(state.fencingToken)}`
  return outcome.seqNum === state.tail && failed === 'matchSeqNum' ? undefined : `the tail is ${state.tail}`
}
