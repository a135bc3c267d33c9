import type { HeadwaterError } from '../../../../src/index.ts'
import type { AppendAck } from '../../../../src/model/info.ts'
import { Violation } from '../../harness/violation.ts'
import type { Moment, StreamHistory } from '../../model/stream-history.ts'
import { type Verdict, verdictOn } from '../../model/stream-state.ts'
import type { AppendAttempt } from '../append-attempt.ts'
import { type Circumstances, checkFailure } from './check-failure.ts'

/** Whether an ack says that the stream was closed before the command of the append. */
export function isClosedAgain({ conditions }: AppendAttempt, { duplicate }: AppendAck): boolean {
  return duplicate === true && conditions.producer === undefined
}

/** An acknowledged append is stored at the position in its ack. */
export function checkAck(
  history: StreamHistory,
  attempt: AppendAttempt,
  ack: AppendAck,
  calledAt: number,
): void {
  const { id, originals } = attempt
  const { start, end, tail, duplicate } = ack
  if (duplicate) {
    const texts = [`${id} is stored already`, `from ${start.seqNum} to ${end.seqNum}`] as const
    observeVerdict(history, attempt, calledAt, texts, (verdict) => {
      return verdict.kind === 'duplicate' && verdict.start === start.seqNum && verdict.end === end.seqNum
    })
    return
  }
  // The batch of a producer may be stored in several incarnations of its stream.
  const place = attempt.places.findLast(({ seqNum }) => seqNum === start.seqNum) ?? attempt.stored
  if (place === undefined) throw new Violation(`${id} is acknowledged when it is stored`, 'it is not stored')
  const { log, seqNum } = place
  if (originals.has(log)) throw new Violation(`${id} is acknowledged as stored by one call`, 'by two')
  originals.add(log)
  const endSeqNum = seqNum + attempt.count
  const expected = [seqNum, log.records[seqNum]!.timestamp, endSeqNum, log.records[endSeqNum - 1]!.timestamp]
  const reported = [start.seqNum, start.timestamp, end.seqNum, end.timestamp]
  if (reported.join() !== expected.join())
    throw new Violation(`the ack of ${id} contains ${expected.join()}`, reported.join())
  const wasTail = history.moments.some(
    (moment) =>
      moment.log === log &&
      moment.state.tail === tail.seqNum &&
      moment.tailTimestamp === tail.timestamp &&
      moment.state.isClosed === (tail.closed ?? false),
  )
  if (!wasTail || tail.seqNum < endSeqNum)
    throw new Violation(
      `the ack of ${id} contains a tail of the stream, from ${endSeqNum} on`,
      `${tail.seqNum}`,
    )
  history.markObserved('records', history.momentOf(log, seqNum))
}

/** The acks of a session arrive in the order of the appends. */
export function checkAckOrder(attempt: AppendAttempt): void {
  const earlier = earlierOf(attempt).find(({ status }) => status !== 'acknowledged')
  if (earlier === undefined) return
  throw new Violation(`${attempt.id} is acknowledged after ${earlier.id}`, `that one is ${earlier.status}`)
}

function earlierOf({ group, id }: AppendAttempt): readonly AppendAttempt[] {
  const attempts = group?.attempts ?? []
  return attempts.slice(
    0,
    attempts.findIndex((other) => other.id === id),
  )
}

/** The effect that a failed append reports must be true. */
export function effectOfFailure(
  attempt: AppendAttempt,
  error: unknown,
  circumstances: Circumstances,
  calledAt: number,
): 'not made' | 'unknown' {
  const effect = effectBefore(attempt) ?? effectOf(attempt, error as HeadwaterError, circumstances, calledAt)
  // An earlier call may have stored the batch of a producer.
  if (effect === 'not made' && attempt.stored !== undefined && attempt.isSingle)
    throw new Violation(`${attempt.id} leaves no trace: it failed with ${String(error)}`, 'it is stored')
  return effect
}

/**
 * Only the first failure of a group has a reason of its own. Appends after one without effect have no effect
 * either.
 */
function effectBefore(attempt: AppendAttempt): 'not made' | 'unknown' | undefined {
  const statuses = earlierOf(attempt).map(({ status }) => status)
  if (statuses.includes('not made')) return 'not made'
  return statuses.some((status) => status !== 'acknowledged') ? 'unknown' : undefined
}

const REFUSALS: ReadonlySet<string> = new Set([
  'already_appended',
  'fencing_token_mismatch',
  'producer_fenced',
  'producer_gap',
  'seq_num_mismatch',
  'stream_closed',
  'stream_seq_not_increasing',
])

function effectOf(
  attempt: AppendAttempt,
  error: HeadwaterError,
  circumstances: Circumstances,
  calledAt: number,
): 'not made' | 'unknown' {
  const { history } = circumstances
  const { id, records } = attempt
  if (REFUSALS.has(error.code) || (error.code === 'invalid' && error.field === 'producer')) {
    const texts = [`${id} is refused only when a condition does not hold`, String(error)] as const
    observeVerdict(history, attempt, calledAt, texts, (verdict) => {
      if (verdict.kind !== 'refused') return false
      return Object.entries(verdict.error).every(
        ([name, value]) => error[name as keyof HeadwaterError] === value,
      )
    })
    return 'not made'
  }
  if (error.code === 'invalid') {
    const isMissing = records.some(({ timestamp }) => timestamp === undefined)
    const texts = [`${id} is invalid only where it lacks a timestamp`, String(error)] as const
    history.observe('config', attempt.since, texts, ({ config }) =>
      isMissing && config?.timestamping.mode === 'client-require' ? undefined : 'none is missing',
    )
    return 'not made'
  }
  return checkFailure(error, circumstances).mayHaveEffects ? 'unknown' : 'not made'
}

function observeVerdict(
  history: StreamHistory,
  attempt: AppendAttempt,
  since: number,
  texts: readonly [expected: string, found: string],
  isRight: (verdict: Verdict) => boolean,
): void {
  history.observe('records', since, texts, ({ log, state }: Moment) => {
    if (log === undefined) return 'there is no stream'
    const verdict = verdictOn(state, attempt)
    return isRight(verdict) ? undefined : JSON.stringify(verdict)
  })
}
