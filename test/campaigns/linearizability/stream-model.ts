import { createHash } from 'node:crypto'
import { afterAppend, EMPTY_STREAM, type StreamState, verdictOn } from '../model/stream-state.ts'
import { type Append, type AppendOutcome, type RecordedOperation, recordsOf } from './operations.ts'

/** A stream in the sequential model, with what its records are. */
export interface StreamContents extends StreamState {
  /** Equal for equal records: a hash of the one without the last record, and of that record. */
  readonly content: string
}

export const EMPTY_CONTENTS: StreamContents = { ...EMPTY_STREAM, content: '' }

/** Returns why the operation cannot have its outcome in this state, as a clause, or undefined if it can. */
export function contradiction(
  state: StreamContents,
  { operation, outcome }: Pick<RecordedOperation, 'operation' | 'outcome'>,
): string | undefined {
  switch (outcome.kind) {
    case 'read':
      if (outcome.tail !== state.tail) return `the stream has ${state.tail} records`
      return contentOf(outcome.bodies) === state.content ? undefined : 'the stream has other records'
    case 'tail':
      return outcome.tail === state.tail ? undefined : `the tail is ${state.tail}`
    case 'not-made':
    case 'failed':
      return undefined
    default:
      return appendContradiction(state, operation as Append, outcome)
  }
}

function appendContradiction(
  state: StreamContents,
  append: Append,
  outcome: Exclude<AppendOutcome, { kind: 'not-made' }>,
): string | undefined {
  const verdict = verdictOn(state, modelOf(append))
  const refusal = verdict.kind === 'refused' ? verdict.error : undefined
  const ofToken = `the fencing token is ${JSON.stringify(state.fencingToken)}`
  const ofTail = `the tail is ${state.tail}`
  if (outcome.kind === 'refused') {
    const isOfToken = 'fencingToken' in outcome
    const isSame = isOfToken
      ? refusal?.fencingToken === outcome.fencingToken
      : refusal?.seqNum === outcome.seqNum
    if (isSame) return undefined
    return isOfToken || refusal?.fencingToken !== undefined ? ofToken : ofTail
  }
  if (outcome.kind === 'appended') {
    const { start, end, tail } = outcome
    const { length } = recordsOf(append)
    if (start !== state.tail) return ofTail
    if (end !== start + length) return `${length} records were appended`
    if (tail < end) return 'the tail in the ack is before the end of the append'
  }
  return refusal && (refusal.fencingToken === undefined ? ofTail : ofToken)
}

/** Returns the state after an append. */
export function afterAppended(state: StreamContents, append: Append): StreamContents {
  const records = recordsOf(append)
  const [start, end] = [state.tail, state.tail + records.length].map((seqNum) => ({ seqNum, timestamp: 0 }))
  const place = { appendedAt: 0, start: start!, end: end! }
  return {
    ...afterAppend(state, modelOf(append), place),
    content: records.reduce(withRecord, state.content),
  }
}

function modelOf(append: Append) {
  const { matchSeqNum, fencingToken, setFencingToken: fence } = append
  return { conditions: { matchSeqNum, fencingToken }, count: recordsOf(append).length, fence, closes: false }
}

function withRecord(content: string, body: string): string {
  return createHash('sha1').update(`${content} ${body}`).digest('base64')
}

const contents = new WeakMap<readonly string[], string>()

function contentOf(bodies: readonly string[]): string {
  const known = contents.get(bodies) ?? bodies.reduce(withRecord, EMPTY_CONTENTS.content)
  contents.set(bodies, known)
  return known
}
